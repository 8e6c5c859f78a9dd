"""A prefill and a decode pool in series: what they are, and what users saw of both."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.tokens import TokenTargets
from headroom.simulator.generation.plant import Engine, TokenService
from headroom.simulator.generation.requests import Floats

UNBOUNDED_TOKENS = 1 << 20
"""Prompts that were moved take no tokens of an iteration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPair:
    """The two pools, and how requests pass them."""

    prefill: TokenService
    decode: TokenService
    coupled: bool = True
    """Whether each sees the other."""
    queue: int = 0
    """Requests in flight per prefill replica; more are rejected, 0 without a bound."""
    bypass_tokens: int = 0
    """Prompts up to this length are computed in the decode pool."""
    blind_from_s: float = math.inf
    blind_until_s: float = math.inf
    """While neither pool sees the pages of the prefill pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOutcome:
    """Outcome of both pools for users, and their cost."""

    first_token_s: Floats
    """[requests] At the prefill pool; inf without an answer."""
    output_token_s: Floats
    """[requests] Time in the decode pool, queues included, per token; inf without an answer."""
    arrival_s: Floats
    gpu_hours: tuple[float, float]
    replicas: NDArray[np.int64]
    """[looks, 5]: second, desired and ready replicas of prefill, of decode."""
    reasons: tuple[tuple[float, str, int, int, str], ...]
    """Moves: second, pool, before, after, message."""

    def kept(self, first_s: float, output_s: float, after_s: float = 0.0) -> tuple[float, float]:
        """Return the shares of the requests from then on that keep each promise."""
        late = self.arrival_s >= after_s
        return (
            float((self.first_token_s[late] <= first_s).mean()),
            float((self.output_token_s[late] <= output_s).mean()),
        )


def decode_engine(engine: Engine) -> Engine:
    """Return the engine of a pool to which prompts are moved."""
    cost = replace(engine.cost, prompt_token_s=0.0, prompt_product_s=0.0)
    return replace(engine, cost=cost, iteration_tokens=UNBOUNDED_TOKENS)


def pool_targets(targets: TokenTargets) -> tuple[TokenTargets, TokenTargets]:
    """Return the promise of the prefill and of the decode pool."""
    return (
        TokenTargets(first_token=targets.first_token),
        TokenTargets(output_token=targets.output_token),
    )
