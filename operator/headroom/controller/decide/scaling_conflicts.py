"""Reasons not to write desired replicas: another writer scales the same workload. Pure.

A ladder whose first match wins; each names the remedy.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.api import InferenceService
from headroom.api.reasons import StatusReason
from headroom.api.timestamps import rfc3339
from headroom.controller.gather.other_writers.other_scalers import OtherScalers
from headroom.controller.gather.other_writers.replica_writers import OF_AUTOSCALERS
from headroom.controller.scheduling.overwrite_backoff import (
    UNDONE,
    UNKNOWN_WRITER,
    WITHIN_S,
    OverwriteBackoff,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingConflict:
    """Reason not to write the decision: another writer scales the workload."""

    reason: StatusReason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictStatus:
    """Effects of other writers on the replicas."""

    conflict: ScalingConflict | None = None
    """Reason why no replicas are written."""
    overridden: str = ""
    """Text: another writer's number is in force; empty if the operator's is."""


def check(
    service: InferenceService,
    scalers: OtherScalers,
    overwrites: OverwriteBackoff[int],
    replicas: int,
    now_s: float,
) -> ConflictStatus:
    """Return the conflict with other writers of a workload's replicas."""
    return ConflictStatus(
        conflict=conflict(
            service,
            owner=scalers.owner,
            autoscaler=scalers.autoscaler,
            replicas=replicas,
            backoff=overwrites,
            now_s=now_s,
        ),
        overridden=overridden(overwrites, replicas, service.spec.scaling.mode),
    )


def conflict(
    service: InferenceService,
    *,
    owner: str,
    autoscaler: str,
    replicas: int,
    backoff: OverwriteBackoff[int],
    now_s: float,
) -> ScalingConflict | None:
    """Return why nothing is written; None without a conflict.

    `owner` and `autoscaler` are names, empty if there is none; `replicas` are the requested ones.
    """
    scaling = service.spec.scaling
    if owner:
        return ScalingConflict(
            reason=StatusReason.TARGET_ALREADY_MANAGED,
            message=f"InferenceService {owner} scales the same workload and has precedence: delete "
            "one of the two",
        )
    if scaling.mode == "Recommend":
        return None
    if autoscaler:
        return ScalingConflict(
            reason=StatusReason.AUTOSCALER_CONFLICT,
            message=f"{autoscaler} scales the same workload: delete it, or set scaling.mode to "
            "Recommend to compare the two; with scaling.mode External it may scale the "
            "InferenceService instead",
        )
    if replicas == 0 and backoff.ours is None and scaling.min_replicas > 0:
        return ScalingConflict(
            reason=StatusReason.SCALING_DISABLED,
            message="another client scaled the workload to zero, which disables scaling: scale it "
            "to 1 or more to enable scaling",
        )
    if backoff.is_paused(now_s):
        return ScalingConflict(
            reason=StatusReason.REPLICAS_REPEATEDLY_OVERWRITTEN,
            message=f"{backoff.by or UNKNOWN_WRITER} keeps overwriting the replicas "
            f"({UNDONE} times within {WITHIN_S / 60:g} min, or again after a pause); none are "
            f"written before {rfc3339(backoff.until_s)}: {remedy(backoff.by, scaling.mode)}",
        )
    return None


def overridden(backoff: OverwriteBackoff[int], replicas: int, mode: str = "Auto") -> str:
    """Say that another client's number is in force; empty if it is not, or is ours again."""
    if not backoff.by or backoff.ours is not None or backoff.instead == replicas:
        return ""
    until = "which is kept until the decision changes"
    if mode == "External":
        until = "which follows spec.replicas again as fast as its rates allow"
    change = f"from {backoff.instead} to {replicas}"
    return f"{backoff.by} changed the replicas {change}, {until}: {remedy(backoff.by, mode)}"


def remedy(manager: str, mode: str = "Auto") -> str:
    """Return how to avoid the conflict with this field manager in this mode of scaling."""
    external = mode == "External"
    if manager in _PEOPLE:
        if external:
            return "to change their number, scale the InferenceService instead of the workload"
        return "to fix a number, set scaling.minReplicas and maxReplicas, or scaling.mode"
    if manager == OF_AUTOSCALERS:
        if external:
            return "let the HorizontalPodAutoscaler scale the InferenceService"
        return "delete the HorizontalPodAutoscaler of the workload"
    return "remove spec.replicas from what it applies (Argo CD: ignoreDifferences /spec/replicas)"


_PEOPLE = frozenset({"kubectl", "kubectl-scale", "kubectl-edit", "kubectl-patch", UNKNOWN_WRITER})
