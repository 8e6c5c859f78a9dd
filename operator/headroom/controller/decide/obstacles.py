"""Why replicas are not written although a decision asks for them: others who scale the same. Pure.

A ladder, first match wins; each says the remedy.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.api import InferenceService
from headroom.api.reasons import StatusReason
from headroom.api.timestamps import rfc3339
from headroom.controller.decide.overwrite_backoff import UNDONE, WITHIN_S, Contest


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What stands between a decision and the replicas."""

    reason: StatusReason
    message: str


def obstacle(
    service: InferenceService,
    *,
    rival: str,
    autoscaler: str,
    replicas: int,
    contest: Contest,
    now_s: float,
) -> Obstacle | None:
    """Say why nothing is written; None where nothing stands in the way.

    `rival` and `autoscaler` are names, empty where there is none; `replicas` is what stands.
    """
    scaling = service.spec.scaling
    if rival:
        return Obstacle(
            reason=StatusReason.TARGET_ALREADY_MANAGED,
            message=f"InferenceService {rival} scales the same workload and goes first: delete one "
            "of the two",
        )
    if scaling.mode == "Recommend":
        return None
    if autoscaler:
        return Obstacle(
            reason=StatusReason.AUTOSCALER_CONFLICT,
            message=f"{autoscaler} scales the same workload: delete it, or set scaling.mode to "
            "Recommend to compare the two; with scaling.mode External it may scale the "
            "InferenceService instead",
        )
    if replicas == 0 and contest.ours is None and scaling.min_replicas > 0:
        return Obstacle(
            reason=StatusReason.SCALING_DISABLED,
            message="somebody scaled the workload to zero, which switches scaling off: scale it to "
            "1 or more to switch it on",
        )
    if contest.paused(now_s):
        return Obstacle(
            reason=StatusReason.REPLICAS_REPEATEDLY_OVERWRITTEN,
            message=f"{contest.by or 'somebody'} keeps changing the replicas that were written "
            f"({UNDONE} times within {WITHIN_S / 60:g} min, or again after a pause); none are "
            f"written before {rfc3339(contest.until_s)}: {remedy(contest.by)}",
        )
    return None


def overridden(contest: Contest, replicas: int) -> str:
    """Say that somebody else's number stands; empty where it does not."""
    if not contest.by or contest.ours is not None:
        return ""
    return (
        f"{contest.by} changed the replicas from {contest.instead} to {replicas}, which stands "
        f"until the decision asks for another number: {remedy(contest.by)}"
    )


def remedy(manager: str) -> str:
    """Say how not to be overruled, by the name under which somebody writes."""
    if manager in _PEOPLE:
        return "to keep a number, set scaling.minReplicas and maxReplicas, or scaling.mode"
    if manager == "kube-controller-manager":
        return "delete the HorizontalPodAutoscaler of the workload"
    return "leave spec.replicas out of what it applies (Argo CD: ignoreDifferences /spec/replicas)"


_PEOPLE = frozenset({"kubectl", "kubectl-scale", "kubectl-edit", "kubectl-patch", "somebody"})
