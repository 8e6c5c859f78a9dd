"""The conditions CapacityAvailable and ReplicasHealthy. Pure."""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.controller.report import replica_messages
from headroom.controller.report.condition_result import FALSE, TRUE, Judgement, TickResult, join
from headroom.scaling.replica_defect import Defect
from headroom.scaling.values.observation import PodState


def capacity_available(tick: TickResult) -> Judgement:
    """Say whether every replica has a node and can start."""
    counts = tick.decision.counts
    if counts.unschedulable:
        detail = replica_messages.detail(tick, PodState.UNSCHEDULABLE)
        message = f"{_replicas(counts.unschedulable)}: {detail}"
        return FALSE, StatusReason.REPLICAS_UNSCHEDULABLE, join(message, tick.preemption)
    if counts.broken:
        detail = replica_messages.detail(tick, PodState.BROKEN)
        message = f"{_replicas(counts.broken)}: {detail}"
        return FALSE, replica_messages.why_broken(tick), message
    if failure := replica_messages.replica_failure(tick):
        return FALSE, StatusReason.POD_CREATION_FORBIDDEN, failure
    return TRUE, StatusReason.ALL_REPLICAS_SCHEDULED, "every replica has a node"


def replicas_healthy(tick: TickResult) -> Judgement:
    """Say which replica is slow, fails or contradicts the others, and what is done about it."""
    found, names = tick.decision.replacement, {one.pod.uid: one.name for one in tick.gathered.pods}
    left_out = [f"{names.get(one.pod, 'a replica')}: {one.why}" for one in tick.decision.left_out]
    if found is not None and found.defect is Defect.OVERLOADED:
        found = None  # the replica works as the others do: see ScalingEffective
    if left_out and found is None:
        are = "is" if len(left_out) == 1 else "are"
        number = _replicas(len(left_out))
        message = f"{number} {are} left out of the decision: {join(*left_out[:3])}"
        return FALSE, StatusReason.REPLICA_IMPLAUSIBLE, message
    if found is None:
        message = "no ready replica is far slower than the others or fails while they answer"
        return TRUE, StatusReason.REPLICAS_ALIKE, message
    name = names.get(found.pod, "a replica")
    slow = found.defect is Defect.SLOW
    reason = StatusReason.REPLICA_SLOW if slow else StatusReason.REPLICA_FAILING
    message = f"{name} {found.detail}: {found.action}"
    return FALSE, reason, join(message, tick.written.unevicted)


def _replicas(number: int) -> str:
    return f"{number} replica" if number == 1 else f"{number} replicas"
