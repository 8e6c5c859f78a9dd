"""KEDA on queue and p95, as the EKS guide sets it up: the larger of both, through a generated HPA.

Sources: keda.sh ScaledObject specification 2.18 (pollingInterval 30 s, cooldownPeriod 300 s,
fallback), Prometheus scaler (ignoreNullValues true: an empty answer or NaN is 0), kedacore/keda
pkg/fallback; docs.aws.amazon.com/eks "Autoscale AI inference with HPA and KEDA" (queue depth as
AverageValue, p95 end-to-end latency as Value). 1..N is the HPA's rule every 15 s with its defaults;
KEDA itself only decides 0 <-> 1, at its polls.

Choices: the guide finds its thresholds by a load test, so the defaults are one batch waiting per
replica and the latency target itself; a fallback value makes the HPA arrive at the
fallback's replicas for any kind of target. Requests are not held at zero replicas, so a service
without pods reports nothing that could activate it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.hpa import queue_of
from headroom.simulator.autoscalers.hpa_controller import (
    DEFAULT_DOWN,
    HpaBehavior,
    Rules,
    combine,
    from_average,
    from_value,
)
from headroom.simulator.autoscalers.peer import Peer, existing_count, ready_pods


class FallbackBehavior(StrEnum):
    """`spec.fallback.behavior`."""

    STATIC = "static"
    CURRENT = "currentReplicas"
    CURRENT_IF_HIGHER = "currentReplicasIfHigher"
    CURRENT_IF_LOWER = "currentReplicasIfLower"

    def replicas(self, fallback: int, current: int) -> int:
        """Return the fallback replicas."""
        match self:
            case FallbackBehavior.STATIC:
                return fallback
            case FallbackBehavior.CURRENT:
                return current
            case FallbackBehavior.CURRENT_IF_HIGHER:
                return max(current, fallback)
            case FallbackBehavior.CURRENT_IF_LOWER:
                return min(current, fallback)


@dataclass(kw_only=True)
class Keda(Peer):
    """Queue (AverageValue) and p95 (Value) as triggers of one ScaledObject."""

    kind: ClassVar[str] = "keda"
    may_be_zero: ClassVar[frozenset[str]] = frozenset(
        {"tolerance", "stabilization_s", "cooldown_s", "fallback_replicas", "failure_threshold"}
    )

    target_batches: float = 1.0
    """Waiting requests per replica, in batches; with `in_flight` running ones, too."""
    in_flight: bool = False
    """The queue trigger is the mean of waiting and running requests over the window."""
    latency_ratio: float = 1.0
    """p95 trigger, as a ratio of the latency target."""
    window_s: float = 60.0
    tolerance: float = 0.1
    stabilization_s: float = 300.0
    polling_s: float = 30.0
    cooldown_s: float = 300.0
    """Time without an active trigger before the last replica is removed; only if the floor is 0."""
    ignore_null_values: bool = True
    fallback_replicas: int = 0
    """0: no fallback. Failures occur only with `ignore_null_values` off."""
    failure_threshold: int = 3
    fallback_behavior: FallbackBehavior = FallbackBehavior.STATIC
    _behavior: HpaBehavior = field(init=False, repr=False)
    _failures: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    _polled_s: float | None = field(default=None, init=False, repr=False)
    _active_s: float | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Raise ValueError for a knob that is out of its range."""
        super().__post_init__()
        down = Rules(stabilization_s=self.stabilization_s, rate=DEFAULT_DOWN.rate)
        self._behavior = HpaBehavior(policy=self.policy, down=down)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the value that KEDA (0 <-> 1) or its HPA (1..N) would write to /scale."""
        queue, latency_s = self._queue(view), self._latency_s(view)
        if self.policy.min_replicas == 0:
            switched = self._switch(view, active=bool((queue or 0) > 0 or (latency_s or 0) > 0))
            if switched is not None:
                return switched
        proposals = [self._by_queue(view, queue), self._by_latency(view, latency_s)]
        return self._behavior.settle(
            view.now_s, view.replicas, combine(proposals, current=view.replicas)
        )

    def _queue(self, view: View) -> float | None:
        return self._known(queue_of(view, in_flight=self.in_flight, window_s=self.window_s))

    def _latency_s(self, view: View) -> float | None:
        ratio = self.policy.latency_percentile
        return self._known(view.metrics.quantile(ratio, view.now_s, self.window_s))

    def _known(self, value: float | None) -> float | None:
        return 0.0 if value is None and self.ignore_null_values else value

    def _by_queue(self, view: View, queue: float | None) -> int | None:
        existing, target = existing_count(view), self.target_batches * self.places
        fallback = self._fallback("queue", queue, view)
        total = fallback * target if fallback is not None else queue
        if total is None:
            return None
        return from_average(total, existing=existing, target=target, tolerance=self.tolerance)

    def _by_latency(self, view: View, latency_s: float | None) -> int | None:
        ready, target_s = len(ready_pods(view)), self.latency_ratio * self.policy.latency_target_s
        fallback = self._fallback("latency", latency_s, view)
        value = fallback * target_s / max(1, ready) if fallback is not None else latency_s
        if value is None:
            return None
        return from_value(
            value, ready=ready, current=view.replicas, target=target_s, tolerance=self.tolerance
        )

    def _fallback(self, trigger: str, value: float | None, view: View) -> int | None:
        """Count consecutive failures; above the threshold return the fallback."""
        self._failures[trigger] = self._failures.get(trigger, 0) + 1 if value is None else 0
        if not self.fallback_replicas or self._failures[trigger] <= self.failure_threshold:
            return None
        return self.fallback_behavior.replicas(self.fallback_replicas, view.replicas)

    def _switch(self, view: View, *, active: bool) -> ScaleRequest | None:
        """Decide 0 <-> 1 at a poll; None leaves the replicas to the HPA."""
        due = self._polled_s is None or view.now_s - self._polled_s >= self.polling_s
        if due:
            self._polled_s = view.now_s
            if active or self._active_s is None:
                self._active_s = view.now_s
        if view.replicas == 0:
            return ScaleRequest(replicas=int(active and due), reason="ScaledObjectActive")
        idle = self._active_s is not None and view.now_s - self._active_s > self.cooldown_s
        return ScaleRequest(replicas=0, reason="ScaledObjectInactive") if idle and due else None
