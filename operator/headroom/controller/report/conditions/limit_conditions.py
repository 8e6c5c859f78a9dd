"""Conditions about limits: the limit on the requested replicas, and why none were written. Pure."""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.controller.report.conditions.condition_result import (
    FALSE,
    TRUE,
    Judgement,
    TickResult,
    join,
)
from headroom.scaling.values.decision_reason import Reason

_REPORTED = frozenset(
    {
        Reason.MAX_REPLICAS,
        Reason.RATE_LIMITED,
        Reason.CAPACITY_SHORTAGE,
        Reason.YIELDED_TO_PRIORITY,
    }
)
"""Limits of a decision that are a reason of the condition too, of the same name."""


def scaling_limited(tick: TickResult) -> Judgement:
    """Return whether a limit reduces the number of replicas."""
    ceiling = tick.ceiling
    if ceiling is not None and ceiling.exceeded:
        message = f"{tick.written.replicas} replicas are kept and none is added; {ceiling.why}"
        return TRUE, StatusReason.OPERATOR_LIMIT, message
    if tick.service.spec.replicas is not None:
        return _request_limited(tick, tick.service.spec.replicas)
    for applied in reversed(tick.decision.limits if tick.decision.replicas else ()):
        if ceiling is not None and ceiling.why and applied.limit is Reason.MAX_REPLICAS:
            message = f"{applied.before} replicas are needed, {ceiling.replicas} allowed"
            return TRUE, StatusReason.OPERATOR_LIMIT, join(message, ceiling.why)
        if applied.limit in _REPORTED and applied.after < applied.before:
            message = f"{applied.before} replicas are needed, {applied.after} allowed"
            return TRUE, StatusReason(applied.limit.value), join(message, applied.detail)
    message = join("no limit reduces the number of replicas", tick.accelerators)
    return FALSE, StatusReason.WITHIN_BOUNDS, message


def _request_limited(tick: TickResult, requested: int) -> Judgement:
    """Return the limit that keeps replicas below spec.replicas; the decision is advice."""
    ceiling, allowed = tick.ceiling, tick.requested
    if allowed is None or allowed >= requested or tick.conflicts.conflict is not None:
        message = join("no limit reduces spec.replicas", tick.accelerators)
        return FALSE, StatusReason.WITHIN_BOUNDS, message
    message = f"spec.replicas is {requested}, {allowed} allowed"
    if ceiling is not None and ceiling.why and allowed == ceiling.replicas:
        return TRUE, StatusReason.OPERATOR_LIMIT, join(message, ceiling.why)
    if allowed == tick.service.spec.scaling.max_replicas:
        return TRUE, StatusReason.MAX_REPLICAS, message
    return TRUE, StatusReason.RATE_LIMITED, f"{message} now"


def nothing_to_scale(tick: TickResult) -> str:
    """Say why no replicas were written."""
    scaling, requested = tick.service.spec.scaling, tick.service.spec.replicas
    if scaling.mode == "Recommend":
        return "no replicas are written, because scaling.mode is Recommend"
    if scaling.mode == "External" and requested != tick.written.replicas:
        return (
            f"the workload has as many replicas as bounds and rates allow on the way to "
            f"spec.replicas ({requested})"
        )
    return "the workload already has the desired number of replicas"
