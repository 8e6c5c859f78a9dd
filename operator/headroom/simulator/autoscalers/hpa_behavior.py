"""How a HorizontalPodAutoscaler limits a recommendation: stabilization, rates, bounds.

Source: kubernetes/kubernetes, pkg/controller/podautoscaler/horizontal.go
(normalizeDesiredReplicasWithBehaviors) and pkg/apis/autoscaling/v2/defaults.go. Policies of one
direction are one `RateLimit`, of which the larger change counts (selectPolicy: Max).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from headroom.scaling.values import Policy, RateLimit
from headroom.simulator.autoscaler import ScaleRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One direction of `spec.behavior`."""

    stabilization_s: float
    rate: RateLimit


DEFAULT_UP = Rules(stabilization_s=0.0, rate=RateLimit(period_s=15.0, replicas=4, percent=100))
DEFAULT_DOWN = Rules(stabilization_s=300.0, rate=RateLimit(period_s=15.0, percent=100))


@dataclass(kw_only=True)
class HpaBehavior:
    """One autoscaler's memory: recommendations and changes of the last windows, newest last."""

    policy: Policy
    up: Rules = DEFAULT_UP
    down: Rules = DEFAULT_DOWN
    _recommendations: list[tuple[float, int]] = field(default_factory=list, init=False)
    _changes: list[tuple[float, int]] = field(default_factory=list, init=False)

    def settle(self, now_s: float, current: int, recommendation: int | None) -> ScaleRequest:
        """Return the value that the controller would write to /scale; None keeps the current value.

        A cycle without a recommendation adds nothing to the windows. The replicas at the first
        cycle are the first recommendation, so nothing is removed for one whole window.
        """
        if not self._recommendations:
            self._recommendations.append((now_s, current))
        low, high = max(1, self.policy.min_replicas), self.policy.max_replicas
        if current == 0:
            return ScaleRequest(replicas=0, reason="ScalingDisabled")
        if not low <= current <= high:
            return self._write(now_s, current, min(max(current, low), high), "OutOfBounds")
        if recommendation is None:
            return ScaleRequest(replicas=current, reason="FailedGetMetrics")
        stable = self._stabilize(now_s, current, recommendation)
        limited = self._limit(now_s, current, stable)
        reason = "DesiredWithinRange"
        if limited != stable:
            reason = "ScaleUpLimit" if stable > current else "ScaleDownLimit"
        elif stable != recommendation:
            reason = "ScaleUpStabilized" if recommendation > current else "ScaleDownStabilized"
        return self._write(now_s, current, min(max(limited, low), high), reason)

    def _write(self, now_s: float, current: int, replicas: int, reason: str) -> ScaleRequest:
        if replicas != current:
            self._changes.append((now_s, replicas - current))
        return ScaleRequest(replicas=replicas, reason=reason)

    def _stabilize(self, now_s: float, current: int, recommendation: int) -> int:
        up, down = self.up.stabilization_s, self.down.stabilization_s
        recent = [past for past in self._recommendations if past[0] > now_s - max(up, down)]
        floor = min([recommendation, *(n for at, n in recent if at > now_s - up)])
        ceiling = max([recommendation, *(n for at, n in recent if at > now_s - down)])
        self._recommendations = [*recent, (now_s, recommendation)]
        return min(max(current, floor), ceiling)

    def _limit(self, now_s: float, current: int, wanted: int) -> int:
        longest = max(self.up.rate.period_s, self.down.rate.period_s)
        self._changes = [change for change in self._changes if change[0] > now_s - longest]
        if wanted > current:
            rate = self.up.rate
            start = current - sum(n for n in self._since(now_s - rate.period_s) if n > 0)
            # Rounded up; otherwise one replica could never become two at 50 %.
            most = max(start + rate.replicas, math.ceil(start * (1 + rate.percent / 100)))
            return min(wanted, max(most, current))
        if wanted < current:
            rate = self.down.rate
            start = current - sum(n for n in self._since(now_s - rate.period_s) if n < 0)
            least = min(start - rate.replicas, int(start * (1 - rate.percent / 100)))
            return max(wanted, min(least, current))
        return wanted

    def _since(self, after_s: float) -> list[int]:
        return [change for at, change in self._changes if at > after_s]
