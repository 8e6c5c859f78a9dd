"""The HPA controller: replicas from metrics, and the limits of a recommendation.

Source: kubernetes/kubernetes, pkg/controller/podautoscaler/replica_calculator.go, horizontal.go
(normalizeDesiredReplicasWithBehaviors) and pkg/apis/autoscaling/v2/defaults.go. A recommendation of
None is an error of that metric: the controller counts it as invalid, never as zero. Policies of one
direction are one `RateLimit`, of which the larger change counts (selectPolicy: Max).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headroom.scaling.values.policy import Policy, RateLimit
from headroom.simulator.autoscaler import ScaleRequest
from headroom.simulator.autoscalers.peer import round_up


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


def _within(ratio: float, tolerance: float) -> bool:
    slack = tolerance + 1e-9  # Ignore the last digits of a mean.
    return 1.0 - slack <= ratio <= 1.0 + slack


def from_pods(
    values: Mapping[str, float],
    *,
    ready: Sequence[str],
    unready: int,
    current: int,
    target: float,
    tolerance: float,
) -> int | None:
    """Return the replicas for a metric of `type: Pods` (or Resource): calcPlainMetricReplicas.

    Ready pods without a value count as at the target when the other pods indicate scale-down and
    as 0 when they indicate scale-up; unready pods are ignored on scale-down and count as 0 on
    scale-up. If that reverses the direction or ends within the tolerance, nothing changes.

    Worked: values 0.9 and 0.9 of two ready pods, two warming, target 0.6: ratio 1.5; with the
    warming ones at 0 it is 0.75, the other direction: the replicas stay.
    """
    known = [values[uid] for uid in ready if uid in values]
    if not known:
        return None
    ratio = sum(known) / len(known) / target
    missing = len(ready) - len(known)
    rebalance = unready > 0 and ratio > 1.0
    if not missing and not rebalance:
        return current if _within(ratio, tolerance) else round_up(ratio * len(known))
    considered = len(known) + missing + (unready if rebalance else 0)
    filled = sum(known) + (missing * target if ratio < 1.0 else 0.0)
    corrected = filled / considered / target
    if _within(corrected, tolerance) or (corrected - 1.0) * (ratio - 1.0) < 0:
        return current
    replicas = round_up(corrected * considered)
    turned = replicas > current if corrected < 1.0 else replicas < current
    return current if turned else replicas


def from_value(value: float, *, ready: int, current: int, target: float, tolerance: float) -> int:
    """Return the replicas for an Object or External metric with a `Value` target, in its unit.

    ceil(ratio x ready pods) outside the tolerance; at 0 replicas ceil(ratio) without tolerance.
    """
    ratio = value / target
    if current == 0:
        return round_up(ratio)
    return current if _within(ratio, tolerance) else round_up(ratio * ready)


def from_average(total: float, *, existing: int, target: float, tolerance: float) -> int:
    """Return the replicas for an Object or External metric with an `AverageValue` target.

    ceil(total / target), or the existing pods (ready or not) where their average lies within the
    tolerance. With no pods the ratio is infinite, or for a total of 0 not a number: 0 stays.
    """
    if existing == 0:
        return round_up(total / target)
    return existing if _within(total / (target * existing), tolerance) else round_up(total / target)


def combine(proposals: Sequence[int | None], *, current: int) -> int | None:
    """Return the largest proposal; None where the controller skips the cycle.

    It skips when every metric failed, and when one failed and the rest would scale down
    (horizontal.go, computeReplicasForMetrics).
    """
    valid = [proposal for proposal in proposals if proposal is not None]
    if not valid:
        return None
    largest = max(valid)
    return None if len(valid) < len(proposals) and largest < current else largest
