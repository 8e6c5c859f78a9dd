"""Simulated generating service: its engine, its pods, its promise."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from headroom.scaling.values.tokens import EngineLimits, IterationCost, TokenTargets


class TokenRouting(IntEnum):
    """Choice of a replica by the gateway."""

    RANDOM = 0
    LEAST_IN_FLIGHT = 1
    LEAST_TOKENS = 2
    """Fewest tokens: prompts that wait, and contexts."""
    PREFIX_AFFINITY = 3
    """The longest cached prefix, unless that replica has far more in flight than the least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One replica: vLLM v1's policy with these bounds and this cost of an iteration."""

    cost: IterationCost
    kv_tokens: int
    """Tokens whose keys and values fit into memory."""
    sequences: int = 256
    iteration_tokens: int = 8192
    block_tokens: int = 16
    noise_cv: float = 0.05
    """Coefficient of variation of an iteration around its cost."""
    gpus: int = 1

    def __post_init__(self) -> None:
        """Raise ValueError for an engine that could not serve one request."""
        if self.kv_tokens < 2 * self.block_tokens or self.block_tokens < 1:
            raise ValueError("kv_tokens must hold at least two blocks; raise kv_tokens")
        if not 1 <= self.sequences <= self.iteration_tokens:
            raise ValueError("sequences must be within 1..iteration_tokens; lower sequences")

    @property
    def limits(self) -> EngineLimits:
        """The bounds, as a page reports them."""
        return EngineLimits(
            kv_tokens=float(self.kv_tokens // self.block_tokens * self.block_tokens),
            sequences=self.sequences,
            iteration_tokens=self.iteration_tokens,
        )

    @property
    def context_tokens(self) -> int:
        """The longest context that fits into memory alone."""
        return (self.kv_tokens // self.block_tokens - 1) * self.block_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenService:
    """A service: replicas of one engine behind one gateway."""

    engine: Engine
    targets: TokenTargets
    routing: TokenRouting = TokenRouting.LEAST_IN_FLIGHT
    affinity_slack: int = 8
    """PREFIX_AFFINITY: requests in flight above the least, from which it is not followed."""
    start_s: float = 100.0
    """From the creation of a pod to its readiness."""
    start_cv: float = 0.1
    drain_s: float = 600.0
    """Grace of a pod that terminates; what is unfinished then is aborted."""
    min_replicas: int = 1
    max_replicas: int = 64
    initial_replicas: int | None = None
    exact_sums: bool = False
    """Whether pages have the exact sums of vLLM's plugin (`CostSums`)."""
