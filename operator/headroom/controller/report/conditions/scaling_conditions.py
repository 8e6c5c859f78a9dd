"""The conditions Ready, ScalingActive and AbleToScale. Pure."""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.controller.act.write_result import Step
from headroom.controller.decide.recovery import DecisionFailure
from headroom.controller.gather.workloads.workload import is_paused
from headroom.controller.report.conditions import limit_conditions, replica_messages, zero_replicas
from headroom.controller.report.conditions.condition_result import (
    COLLECTING,
    FALSE,
    TRUE,
    UNKNOWN,
    Judgement,
    TickResult,
    join,
)
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.observation import PodState
from headroom.scaling.values.signals import Freshness


def ready(tick: TickResult) -> Judgement:
    """Say whether enough replicas serve, as the spec says.

    Others set the number in mode Recommend, and where another autoscaler scales the workload:
    minReplicas cannot ask for more than they requested.
    """
    counts, least = tick.decision.counts, tick.service.spec.scaling.min_replicas
    conflict = tick.conflicts.conflict is not None and tick.written.replicas > 0
    if tick.service.spec.scaling.mode == "Recommend" or conflict:
        least = min(least, max(1, tick.written.replicas))
    if tick.written.refused is Step.VALIDATE:
        return FALSE, StatusReason.INVALID_SPEC, tick.written.message
    if tick.written.namespace_ends:
        return FALSE, StatusReason.NAMESPACE_TERMINATING, tick.written.message
    if tick.written.refused is Step.CHILDREN:
        return FALSE, StatusReason.APPLY_FAILED, tick.written.message
    if tick.written.overwritten:
        return FALSE, StatusReason.DEPLOYMENT_REPEATEDLY_OVERWRITTEN, tick.written.unapplied
    if tick.written.unapplied:
        reason = StatusReason.INVALID_SPEC if tick.written.invalid else StatusReason.APPLY_FAILED
        return FALSE, reason, tick.written.unapplied
    if tick.is_at_zero:
        return TRUE, StatusReason.SCALED_TO_ZERO, zero_replicas.waits(tick)
    ready = f"{counts.ready} of {tick.written.replicas} replicas are ready"
    if counts.ready >= max(1, least):
        return TRUE, StatusReason.SERVING, join(ready, replica_messages.cold(tick))
    wanted = f"{ready}, minReplicas is {least}"
    if least == 0:
        wanted = f"{ready}, {zero_replicas.held(tick)}"
    if tick.is_waking:
        return FALSE, StatusReason.WARMING_UP, f"{wanted}; the first replica is requested"
    if counts.broken:
        why = replica_messages.detail(tick, PodState.BROKEN)
        return FALSE, replica_messages.why_broken(tick), f"{wanted}; {why}"
    if counts.unschedulable:
        why = replica_messages.unplaced(tick)
        return FALSE, StatusReason.REPLICAS_UNSCHEDULABLE, f"{wanted}; {why}"
    if counts.warming + counts.late or tick.written.scaled:  # their pods are listed next tick
        return (
            FALSE,
            StatusReason.WARMING_UP,
            join(
                wanted,
                replica_messages.fetching(tick),
                replica_messages.starting(tick),
                replica_messages.gate(tick),
            ),
        )
    if failure := replica_messages.replica_failure(tick):
        return FALSE, StatusReason.POD_CREATION_FORBIDDEN, f"{wanted}; {failure}"
    return FALSE, StatusReason.NO_READY_REPLICAS, wanted


def scaling_active(tick: TickResult) -> Judgement:
    """Say whether decisions are made and written."""
    if tick.written.refused is Step.VALIDATE:
        return FALSE, StatusReason.INVALID_SPEC, tick.written.message
    if tick.conflicts.conflict is not None:
        return FALSE, tick.conflicts.conflict.reason, tick.conflicts.conflict.message
    if tick.failure is not None and tick.failure.kept:
        return UNKNOWN, StatusReason.EVALUATION_FAILED, _failed(tick.failure)
    if tick.service.spec.scaling.mode == "External":
        message = (
            f"spec.replicas ({tick.service.spec.replicas}) is followed, because scaling.mode is "
            f"External; the decision ({tick.decision.replicas}) is advice"
        )
        return FALSE, StatusReason.EXTERNALLY_SCALED, message
    if tick.service.spec.scaling.mode == "Recommend":
        message = "decisions are not written, because scaling.mode is Recommend"
        return FALSE, StatusReason.RECOMMEND_ONLY, message
    if tick.is_at_zero:
        return TRUE, StatusReason.SCALED_TO_ZERO, zero_replicas.waits(tick)
    if tick.is_collecting:
        return UNKNOWN, StatusReason.COLLECTING_METRICS, COLLECTING
    if tick.decision.signals.freshness is Freshness.MISSING and not tick.decision.counts.ready:
        return FALSE, StatusReason.NO_READY_REPLICAS, "no replica is ready, so the number is kept"
    if tick.decision.signals.freshness is Freshness.MISSING:
        return (
            FALSE,
            StatusReason.METRICS_MISSING,
            "metrics are missing; the replica count is kept until they return",
        )
    return TRUE, StatusReason.AUTO, "decisions are made and written"


def _failed(failure: DecisionFailure) -> str:
    """Return the exception that the decision raised, and its consequence, as text."""
    message = f"the decision raised {failure.text}; no replica is removed"
    if failure.restarted:
        return f"{message}, and what was learned is discarded"
    return message


def able_to_scale(tick: TickResult) -> Judgement:
    """Say whether the replicas could be written."""
    if tick.written.refused is Step.VALIDATE:
        return FALSE, StatusReason.INVALID_SPEC, tick.written.message
    if tick.written.refused is not None:
        return FALSE, StatusReason.SCALE_FAILED, tick.written.message
    if tick.conflicts.conflict is not None:
        return FALSE, tick.conflicts.conflict.reason, tick.conflicts.conflict.message
    if tick.written.scaled or tick.written.created:
        message = f"{tick.written.replicas} replicas were requested"
        why = tick.written.unmarked
        unmarked = why and f"pods could not be marked to be removed first: {why}"
        return TRUE, StatusReason.SCALED, join(message, unmarked)
    if tick.conflicts.overridden and _is_kept(tick):
        return TRUE, StatusReason.REPLICAS_OVERWRITTEN, tick.conflicts.overridden
    workload = tick.gathered.deployment or {}
    if is_paused(workload):
        message = (
            "the workload is paused, so template changes do not reach its pods: kubectl rollout"
        )
        return TRUE, StatusReason.WORKLOAD_PAUSED, f"{message} resume"
    if tick.gathered.observation.rolling:
        return TRUE, StatusReason.ROLLING_OUT, replica_messages.rollout(tick)
    return TRUE, StatusReason.NOTHING_TO_SCALE, limit_conditions.nothing_to_scale(tick)


def _is_kept(tick: TickResult) -> bool:
    """Return whether the other client's number is in force against the decision.

    It is until a limit ends. Where none binds, the rules, or minReplicas and maxReplicas, need
    this number.
    """
    if tick.service.spec.scaling.mode == "External":
        return tick.service.spec.replicas != tick.written.replicas
    return any(one.before != one.after for one in tick.decision.limits if one.limit not in _BOUNDS)


_BOUNDS = frozenset({Reason.MIN_REPLICAS, Reason.MAX_REPLICAS})
