"""llm-d's SLO-aware rule: estimated latency over its target, by KEDA's formula through an HPA.

Source: llm-d/llm-d, guides/workload-autoscaling/README.slo-aware.md and slo-aware/: recording rules
every 15 s over 1-minute histograms at a 5 s scrape, clamped at 2 and averaged over 45 s; thresholds
0.55 and 0.40; HPA up max(4, 100 %) per 60 s with a 30 s window, down 1 pod per 120 s with a 180 s
window. No traffic, NaN and an empty answer all read 0, as the rules do: without metrics the pool
drains to its floor.

Choices: the guide takes the worse of P90 TTFT and TPOT; a service that answers whole requests has
one latency, so the signal is the measured percentile over its target (the guide's own fallback
without predictions). The formula's target of 1 per pod keeps the HPA's tolerance of 0.1: with 10
replicas or more it does not take a step of one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from headroom.scaling.values.policy import RateLimit
from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.hpa_controller import HpaBehavior, Rules, from_average
from headroom.simulator.autoscalers.peer import Peer, existing_count, ready_pods, round_up

UP_RATE = RateLimit(period_s=60.0, replicas=4, percent=100)
DOWN_RATE = RateLimit(period_s=120.0, replicas=1)


def outside_band(signal: float, band: tuple[float, float], *, provisioned: int, ready: int) -> int:
    """Return the replicas of the guide's formula; within the band they stay.

    `signal` is a latency over its target, `band` its lower and upper threshold. Warming pods are
    credited on scale-up only: the signal comes from the r ready ones of n, so all of them will see
    r / n of it.
    """
    lower, upper = band
    credit = ready / provisioned if 0 < ready < provisioned else 1.0
    if signal > upper:
        return provisioned + round_up(provisioned * (signal * credit / upper - 1))
    if signal < lower:
        return provisioned - math.floor(provisioned * (1 - signal / lower) + 1e-9)
    return provisioned


@dataclass(kw_only=True)
class LlmdSlo(Peer):
    """n + ceil(n (s c / up - 1)) above the band, n - floor(n (1 - s / down)) below it."""

    kind: ClassVar[str] = "llm-d-slo"
    may_be_zero: ClassVar[frozenset[str]] = frozenset(
        {"tolerance", "down_threshold", "up_stabilization_s", "stabilization_s"}
    )

    scrape_s: float = 5.0
    up_threshold: float = 0.55
    down_threshold: float = 0.40
    clamp: float = 2.0
    smoothing_s: float = 45.0
    window_s: float = 60.0
    tolerance: float = 0.1
    up_stabilization_s: float = 30.0
    stabilization_s: float = 180.0
    """Scale-down stabilization."""
    above_floor: bool = False
    """Use the wait over the wait's budget, both above the cost of one request. This is closer to a
    time to first token where service takes long."""
    _recorded: list[tuple[float, float]] = field(default_factory=list, init=False, repr=False)
    _behavior: HpaBehavior = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raise ValueError for a knob that is out of its range."""
        super().__post_init__()
        if self.down_threshold >= self.up_threshold:
            raise ValueError(
                f"{self.kind}: down_threshold must be below up_threshold; "
                f"got {self.down_threshold} and {self.up_threshold}"
            )
        self._behavior = HpaBehavior(
            policy=self.policy,
            up=Rules(stabilization_s=self.up_stabilization_s, rate=UP_RATE),
            down=Rules(stabilization_s=self.stabilization_s, rate=DOWN_RATE),
        )

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the HPA's result for the formula."""
        wanted = outside_band(
            self._signal(view),
            (self.down_threshold, self.up_threshold),
            provisioned=view.replicas,
            ready=len(ready_pods(view)),
        )
        recommendation = from_average(
            wanted, existing=existing_count(view), target=1.0, tolerance=self.tolerance
        )
        return self._behavior.settle(view.now_s, view.replicas, recommendation)

    def _signal(self, view: View) -> float:
        policy = self.policy
        measured = view.metrics.quantile(policy.latency_percentile, view.now_s, self.window_s)
        floor_s = self.truth.spec.server.execution_s(1) if self.above_floor else 0.0
        budget_s = max(policy.latency_target_s - floor_s, 1e-9)
        raw = max(0.0, (measured or 0.0) - floor_s) / budget_s
        kept = [past for past in self._recorded if past[0] > view.now_s - self.smoothing_s]
        self._recorded = [*kept, (view.now_s, min(raw, self.clamp))]
        return sum(value for _, value in self._recorded) / len(self._recorded)
