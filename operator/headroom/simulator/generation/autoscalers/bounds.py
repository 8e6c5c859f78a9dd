"""Bounds: fixed replicas, a clairvoyant that knows the arrivals, an ideal one without forecast.

Both use the work of each request, in shares of one replica: the larger of its share of engine time
and of memory, from the plant's own coefficients. `share` is how much of a replica may be used; the
study searches it in hindsight, so that each bound is the cheapest that keeps the promises.

    time   w = b I + d O + c O ctx + e I^2 / 2      share of the engine at full use
    memory O tau (I + O/2) / K                      tau: an iteration at this use
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.generation.autoscalers.peer import TokenPeer, output_s
from headroom.simulator.generation.plant import Engine
from headroom.simulator.generation.requests import Requests

Floats = NDArray[np.float64]
BIN_S = 5.0


@dataclass(kw_only=True)
class Fixed(TokenPeer):
    """A fixed number of replicas."""

    kind: ClassVar[str] = "fixed"

    period_s: float = 60.0
    replicas: int = 1

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the number."""
        return ScaleRequest(replicas=self.replicas)


def work_shares(engine: Engine, requests: Requests, output_target_s: float) -> Floats:
    """Return the replica seconds that each request needs alone, by time or memory, [requests]."""
    cost = engine.cost
    prompt, output = requests.prompt_tokens.astype(float), requests.output_tokens.astype(float)
    context = prompt + output / 2
    time_s = (
        cost.prompt_token_s * prompt
        + cost.sequence_s * output
        + cost.context_token_s * output * context
        + cost.prompt_product_s * prompt**2 / 2
    )
    # An iteration at half of the engine's time, or at the promise if that is shorter.
    step_s = min(2.0 * (cost.fixed_s + cost.experts_s * 0.5), output_target_s)
    memory_s = output * step_s * context / engine.kv_tokens
    used = np.maximum(time_s.sum(), memory_s.sum())
    shares: Floats = time_s if used == time_s.sum() else memory_s
    return shares


@dataclass(kw_only=True)
class _ByWork(TokenPeer):
    period_s: float = BIN_S
    share: float = 0.6
    smoothing_s: float = 30.0
    _bins: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Sum the work that arrives in each bin."""
        requests, service = self.truth.requests, self.truth.service
        shares = work_shares(service.engine, requests, output_s(self.targets))
        bins = (requests.arrival_s // BIN_S).astype(np.int64)
        self._bins = np.bincount(bins, weights=shares) / BIN_S
        width = max(1, int(self.smoothing_s / BIN_S))
        padded = np.concatenate((np.full(width - 1, self._bins[:width].mean()), self._bins))
        self._bins = np.convolve(padded, np.ones(width) / width, mode="valid")

    def _needed(self, from_s: float, to_s: float) -> int:
        last = len(self._bins) - 1
        start = min(max(0, int(from_s / BIN_S)), last)
        stop = min(max(start + 1, int(to_s / BIN_S) + 1), last + 1)
        return max(1, int(np.ceil(self._bins[start:stop].max() / self.share - 1e-9)))


@dataclass(kw_only=True)
class Clairvoyant(_ByWork):
    """Knows all arrivals: has the replicas ready that the work of each moment needs."""

    kind: ClassVar[str] = "clairvoyant"

    behind_s: float = 30.0

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the most that is needed until a pod created now would be of use."""
        service = self.truth.service
        ahead_s = service.start_s * (1.0 + 2.0 * service.start_cv) + self.smoothing_s
        needed = self._needed(view.now_s - self.behind_s, view.now_s + ahead_s)
        return ScaleRequest(replicas=needed, reason="Known")


@dataclass(kw_only=True)
class IdealReactive(_ByWork):
    """Knows the work of the last seconds exactly, and nothing of the future."""

    kind: ClassVar[str] = "ideal-reactive"

    hold_s: float = 60.0

    def evaluate(self, view: View) -> ScaleRequest:
        """Return what the last seconds needed."""
        needed = self._needed(view.now_s - self.hold_s, view.now_s - BIN_S)
        return ScaleRequest(replicas=needed, reason="Measured")
