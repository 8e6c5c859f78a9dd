"""Conditions of a service without a decision: invalid, unusable, deleted, or its tick failed."""

from __future__ import annotations

from collections.abc import Iterable

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionType
from headroom.controller.gather.workloads.workload import TargetUnusable
from headroom.controller.report.conditions.condition_result import (
    FALSE,
    TRUE,
    UNKNOWN,
    ConditionResult,
    condition_result,
    join,
)


def of_invalid_spec(message: str) -> list[ConditionResult]:
    """Return the conditions of an object that cannot be acted on; all others are kept."""
    return [
        condition_result(kind, FALSE, StatusReason.INVALID_SPEC, message)
        for kind in (ConditionType.READY, ConditionType.SCALING_ACTIVE)
    ]


def of_unusable_target(error: TargetUnusable) -> list[ConditionResult]:
    """Return the conditions of a service whose target cannot be scaled: one says why."""
    kinds = (ConditionType.READY, ConditionType.SCALING_ACTIVE, ConditionType.ABLE_TO_SCALE)
    said = [condition_result(kind, FALSE, error.reason, str(error)) for kind in kinds]
    seen = f"not known without a target; see {ConditionType.READY}"
    others = (kind for kind in ConditionType if kind not in kinds)
    return [*said, *(condition_result(kind, UNKNOWN, error.reason, seen) for kind in others)]


def of_deletion(finalizers: Iterable[str]) -> list[ConditionResult]:
    """Return the condition of an object that is being deleted and waits for others."""
    waits = ", ".join(sorted(finalizers)[:4])
    said = "it is being deleted; its replicas are kept, and nothing is scaled or repaired"
    step = waits and f"the deletion waits until others remove the finalizers {waits}"
    return [
        condition_result(
            ConditionType.SCALING_ACTIVE, FALSE, StatusReason.DELETING, join(said, step)
        )
    ]


def of_no_room(why: str) -> list[ConditionResult]:
    """Return the conditions of a service that may not start a single replica."""
    kinds = (ConditionType.READY, ConditionType.SCALING_ACTIVE)
    said = f"no replica may be started: {why}"
    held = [condition_result(kind, FALSE, StatusReason.OPERATOR_LIMIT, said) for kind in kinds]
    limited = condition_result(
        ConditionType.SCALING_LIMITED, TRUE, StatusReason.OPERATOR_LIMIT, said
    )
    return [*held, limited]


def of_failed_tick(message: str) -> list[ConditionResult]:
    """Return the condition of a service whose tick failed unexpectedly."""
    said = f"the last evaluation failed and is retried: {message}"
    reason = StatusReason.EVALUATION_FAILED
    return [condition_result(ConditionType.SCALING_ACTIVE, UNKNOWN, reason, said)]
