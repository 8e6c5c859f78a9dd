"""The conditions CapacityAvailable and ReplicasHealthy. Pure."""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.controller.report.conditions import replica_messages
from headroom.controller.report.conditions.condition_result import (
    COLLECTING,
    FALSE,
    TRUE,
    UNKNOWN,
    Judgement,
    TickResult,
    join,
)
from headroom.scaling.values.observation import PodState
from headroom.scaling.values.replica_defect import Defect
from headroom.scaling.values.signals import Freshness


def capacity_available(tick: TickResult) -> Judgement:
    """Say whether every replica has a node and can start."""
    counts = tick.decision.counts
    if counts.unschedulable:
        message = f"{_replicas(counts.unschedulable)}: {replica_messages.unplaced(tick)}"
        return FALSE, StatusReason.REPLICAS_UNSCHEDULABLE, join(message, tick.preemption)
    if counts.broken:
        detail = replica_messages.detail(tick, PodState.BROKEN)
        message = f"{_replicas(counts.broken)}: {detail}"
        return FALSE, replica_messages.why_broken(tick), message
    if failure := replica_messages.replica_failure(tick):
        return FALSE, StatusReason.POD_CREATION_FORBIDDEN, failure
    return TRUE, StatusReason.ALL_REPLICAS_SCHEDULED, "every replica has a node"


def replicas_healthy(tick: TickResult) -> Judgement:
    """Say which replica is slow, fails or contradicts the others, and the action taken."""
    found, names = tick.decision.replacement, {one.pod.uid: one.name for one in tick.gathered.pods}
    left_out = [f"{names.get(one.pod, 'a replica')}: {one.why}" for one in tick.decision.left_out]
    if found is not None and found.defect is Defect.OVERLOADED:
        found = None  # the replica works as the others do: see ScalingEffective
    if left_out and found is None:
        are = "is" if len(left_out) == 1 else "are"
        number = _replicas(len(left_out))
        message = f"{number} {are} left out of the decision: {join(*left_out[:3])}"
        return FALSE, StatusReason.REPLICA_IMPLAUSIBLE, message
    if found is None and (unknown := _not_compared(tick)):
        return unknown
    if found is None:
        message = "no ready replica is far slower than the others or fails while they answer"
        return TRUE, StatusReason.REPLICAS_ALIKE, message
    name = names.get(found.pod, "a replica")
    slow = found.defect is Defect.SLOW
    reason = StatusReason.REPLICA_SLOW if slow else StatusReason.REPLICA_FAILING
    message = f"{name} {found.detail}: {found.action}"
    return FALSE, reason, join(message, tick.written.unevicted)


def _not_compared(tick: TickResult) -> Judgement | None:
    """Return why replicas cannot be compared; None if all of them are, or none is needed."""
    freshness = tick.decision.signals.freshness
    if tick.is_at_zero:
        return None
    if not tick.decision.counts.ready:
        return UNKNOWN, StatusReason.NO_READY_REPLICAS, "no replica is ready"
    if freshness is Freshness.FRESH:
        return None
    if tick.is_collecting:
        return UNKNOWN, StatusReason.COLLECTING_METRICS, COLLECTING
    if freshness is Freshness.STALE:
        old = "metrics are too old, so the replicas cannot be compared"
        return UNKNOWN, StatusReason.METRICS_STALE, old
    missing = "metrics are missing, so the replicas cannot be compared"
    return UNKNOWN, StatusReason.METRICS_MISSING, missing


def _replicas(number: int) -> str:
    return f"{number} replica" if number == 1 else f"{number} replicas"
