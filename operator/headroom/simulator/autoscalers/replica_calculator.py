"""How a HorizontalPodAutoscaler computes replicas from one metric.

Source: kubernetes/kubernetes, pkg/controller/podautoscaler/replica_calculator.go. None is an error
of that metric: the controller counts it as invalid, never as zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headroom.simulator.autoscalers.peer import round_up


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
    """Return the replicas for an Object or External metric with a `Value` target.

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
