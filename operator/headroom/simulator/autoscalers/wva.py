"""llm-d's Workload Variant Autoscaler: saturation v1 (spare shares) and v2 (token capacity).

Sources: llm-d/llm-d-workload-variant-autoscaler, docs/saturation-analyzer.md (v1),
internal/engines/analyzers/saturation_v2/analyzer.go and internal/engines/pipeline/
cost_aware_optimizer.go (v2). One variant, one accelerator. The result is a gauge that an HPA with
its defaults passes through (AverageValue 1, tolerance 0.1); the optimizer runs every 15 s (code) to
60 s (documentation). Missing metrics keep the replicas; pods that a scrape missed count as having
no load.

Mapping to a server that keeps no tokens: a token in use is a *request in execution*, KV capacity is
the replica's places, the request queue is the server's. So KV usage = running / places, k1 = 0.8 x
places, and k2 is what ran while the queue was saturated. Both are means over the last minute where
the original takes the largest sample: the number of running requests changes between 0 and a batch
with every execution, so its maximum would always be a full replica.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import ClassVar

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.hpa_controller import (
    DEFAULT_DOWN,
    HpaBehavior,
    Rules,
    from_average,
)
from headroom.simulator.autoscalers.peer import Peer, existing_count, of_ready, ready_pods, round_up
from headroom.simulator.compiled.plant_layout import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One replica's last minute, in requests."""

    running: float
    waiting: float


@dataclass(kw_only=True)
class Wva(Peer):
    """The base of both versions: means over a minute, the optimizer's interval, the HPA."""

    may_be_zero: ClassVar[frozenset[str]] = frozenset({"tolerance", "stabilization_s"})

    interval_s: float = 15.0
    """Between two runs of the optimizer; the HPA runs every `period_s`."""
    kv_threshold: float = 0.80
    queue_threshold: float = 5.0
    """Queue length at which a replica counts as saturated."""
    window_s: float = 60.0
    tolerance: float = 0.1
    stabilization_s: float = 300.0
    _behavior: HpaBehavior = field(init=False, repr=False)
    _ran_s: float | None = field(default=None, init=False, repr=False)
    _gauge: int | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Raise ValueError for a knob that is out of its range."""
        super().__post_init__()
        down = Rules(stabilization_s=self.stabilization_s, rate=DEFAULT_DOWN.rate)
        self._behavior = HpaBehavior(policy=self.policy, down=down)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the HPA's result for the optimizer's gauge."""
        if self._ran_s is None or view.now_s - self._ran_s >= self.interval_s:
            self._ran_s = view.now_s
            self._gauge = self._optimize(view)
        recommendation = None
        if self._gauge is not None:
            recommendation = from_average(
                self._gauge, existing=existing_count(view), target=1.0, tolerance=self.tolerance
            )
        return self._behavior.settle(view.now_s, view.replicas, recommendation)

    def _optimize(self, view: View) -> int | None:
        flight = of_ready(view.metrics.rate(Column.IN_FLIGHT_S, view.now_s, self.window_s), view)
        waiting = of_ready(view.metrics.rate(Column.WAITING_S, view.now_s, self.window_s), view)
        loads = [
            Load(running=flight[uid] - waiting[uid], waiting=waiting[uid])
            for uid in flight
            if uid in waiting
        ]
        if not loads:
            return view.replicas or None
        ready = min(len(ready_pods(view)), view.replicas)
        return self.decide(loads, ready=ready, pending=view.replicas - ready)

    @abstractmethod
    def decide(self, loads: Sequence[Load], *, ready: int, pending: int) -> int:
        """Return the desired replicas from the loads of the replicas that reported."""


@dataclass(kw_only=True)
class WvaSaturation(Wva):
    """+1 when unsaturated replicas have too little spare, -1 when N - 1 would still have enough."""

    kind: ClassVar[str] = "wva-v1"

    kv_spare_trigger: float = 0.10
    queue_spare_trigger: float = 3.0

    def decide(self, loads: Sequence[Load], *, ready: int, pending: int) -> int:
        """Return N + 1, N or N - 1; with pending replicas always N."""
        current = ready + pending
        if pending:
            return current
        used = [(load.running / self.places, load.waiting) for load in loads]
        calm = [
            (kv, queue)
            for kv, queue in used
            if kv < self.kv_threshold and queue < self.queue_threshold
        ]
        kv_sum, queue_sum = sum(kv for kv, _ in calm), sum(queue for _, queue in calm)
        if not calm or not self._spared(kv_sum / len(calm), queue_sum / len(calm)):
            return current + 1
        rest = len(calm) - 1
        if rest >= 1 and self._spared(kv_sum / rest, queue_sum / rest):
            return current - 1
        return current

    def _spared(self, kv: float, queue: float) -> bool:
        # The last digits of a mean must not decide where a spare equals its trigger.
        return (
            self.kv_threshold - kv >= self.kv_spare_trigger - 1e-9
            and self.queue_threshold - queue >= self.queue_spare_trigger - 1e-9
        )


@dataclass(kw_only=True)
class WvaTokens(Wva):
    """required = D / 0.85 - (R + pending) cap, spare = R cap - D / 0.70, in whole replicas."""

    kind: ClassVar[str] = "wva-v2"

    scale_up_threshold: float = 0.85
    scale_down_boundary: float = 0.70
    _observed: deque[float] = field(
        default_factory=lambda: deque(maxlen=10), init=False, repr=False
    )
    """Running requests per replica while its queue was saturated: k2."""

    def decide(self, loads: Sequence[Load], *, ready: int, pending: int) -> int:
        """Return the replicas that carry the demand; pending ones are credited on scale-up."""
        demand = sum(load.running + load.waiting for load in loads)
        capacity = median([self._capacity(load) for load in loads])
        required = demand / self.scale_up_threshold - (ready + pending) * capacity
        if required > 0:
            return ready + pending + round_up(required / capacity)
        spare = ready * capacity - demand / self.scale_down_boundary
        removable = math.floor(max(0.0, spare) / capacity + 1e-9)
        return max(1, ready + pending - removable)

    def _capacity(self, load: Load) -> float:
        memory_bound = self.kv_threshold * self.places
        if load.waiting >= self.queue_threshold and load.running > 0:
            self._observed.append(load.running)
            return min(memory_bound, load.running)
        if self._observed:
            return min(memory_bound, sum(self._observed) / len(self._observed))
        return memory_bound
