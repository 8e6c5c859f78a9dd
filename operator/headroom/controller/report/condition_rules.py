"""The conditions of a tick. Pure.

One small function per condition, each a ladder whose first match wins. A condition that is not as
it should be names the next step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from headroom.api.conditions import Conditions, ConditionStatus, ConditionType
from headroom.api.reasons import StatusReason
from headroom.api.status import duration_text
from headroom.controller.act.write_result import Step
from headroom.controller.decide.recovery import DecisionFailure
from headroom.controller.gather.workload import TargetUnusable, is_paused
from headroom.controller.report import (
    class_conditions,
    demand_conditions,
    feasibility_conditions,
    limit_conditions,
    replica_conditions,
    replica_messages,
    routing_conditions,
    zero_replicas,
)
from headroom.controller.report.condition_result import (
    COLLECTING,
    ConditionResult,
    TickResult,
    condition_result,
    join,
)
from headroom.controller.report.next_steps import steps_of
from headroom.scaling.values.observation import PodState
from headroom.scaling.values.signals import Freshness

_TRUE, _FALSE, _UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
_Condition = tuple[ConditionStatus, StatusReason, str]


def of_tick(tick: TickResult) -> list[ConditionResult]:
    """Return every condition as of this tick."""
    ready = tick.decision.counts.ready
    steps = steps_of(tick.service.spec.scaling.mode, tick.written.replicas, ready)
    return [condition_result(kind, *find(tick), steps) for kind, find in _LADDERS.items()]


def before_write(
    found: Iterable[ConditionResult], stored: Conditions, generation: int
) -> tuple[list[ConditionResult], frozenset[ConditionType]]:
    """Return the conditions of a tick that has not written yet, and which of them are as stored.

    Those that say how a write ended keep what they say: this one has no outcome.
    """
    kept = {
        one.kind: one
        for condition in stored
        if (one := ConditionResult.of_stored(condition)) is not None
        and (
            one.kind in _OF_WRITES
            or (one.kind is ConditionType.READY and one.reason in _WRITE_FAILED)
            or (one.kind is ConditionType.READY and condition.observed_generation != generation)
        )
    }
    return [kept.get(one.kind, one) for one in found], frozenset(kept)


def of_invalid_spec(message: str) -> list[ConditionResult]:
    """Return the conditions of an object that cannot be acted on; all others are kept."""
    return [
        condition_result(kind, _FALSE, StatusReason.INVALID_SPEC, message)
        for kind in (ConditionType.READY, ConditionType.SCALING_ACTIVE)
    ]


def of_unusable_target(error: TargetUnusable) -> list[ConditionResult]:
    """Return the conditions of a service whose target cannot be scaled."""
    kinds = (ConditionType.READY, ConditionType.SCALING_ACTIVE, ConditionType.ABLE_TO_SCALE)
    return [condition_result(kind, _FALSE, error.reason, str(error)) for kind in kinds]


def of_deletion(finalizers: Iterable[str]) -> list[ConditionResult]:
    """Return the condition of an object that is being deleted and waits for others."""
    waits = ", ".join(sorted(finalizers)[:4])
    said = "it is being deleted; its replicas are kept, and nothing is scaled or repaired"
    step = waits and f"the deletion waits until others remove the finalizers {waits}"
    return [
        condition_result(
            ConditionType.SCALING_ACTIVE, _FALSE, StatusReason.DELETING, join(said, step)
        )
    ]


def of_no_room(why: str) -> list[ConditionResult]:
    """Return the conditions of a service that may not start a single replica."""
    kinds = (ConditionType.READY, ConditionType.SCALING_ACTIVE)
    said = f"no replica may be started: {why}"
    held = [condition_result(kind, _FALSE, StatusReason.OPERATOR_LIMIT, said) for kind in kinds]
    limited = condition_result(
        ConditionType.SCALING_LIMITED, _TRUE, StatusReason.OPERATOR_LIMIT, said
    )
    return [*held, limited]


def of_failed_tick(message: str) -> list[ConditionResult]:
    """Return the condition of a service whose tick failed unexpectedly."""
    said = f"the last evaluation failed and is retried: {message}"
    reason = StatusReason.EVALUATION_FAILED
    return [condition_result(ConditionType.SCALING_ACTIVE, _UNKNOWN, reason, said)]


def _ready(tick: TickResult) -> _Condition:
    counts, least = tick.decision.counts, tick.service.spec.scaling.min_replicas
    if tick.written.refused is Step.VALIDATE:
        return _FALSE, StatusReason.INVALID_SPEC, tick.written.message
    if tick.written.namespace_ends:
        return _FALSE, StatusReason.NAMESPACE_TERMINATING, tick.written.message
    if tick.written.refused is Step.CHILDREN:
        return _FALSE, StatusReason.APPLY_FAILED, tick.written.message
    if tick.written.overwritten:
        return _FALSE, StatusReason.DEPLOYMENT_REPEATEDLY_OVERWRITTEN, tick.written.unapplied
    if tick.written.unapplied:
        reason = StatusReason.INVALID_SPEC if tick.written.invalid else StatusReason.APPLY_FAILED
        return _FALSE, reason, tick.written.unapplied
    if tick.is_at_zero:
        return _TRUE, StatusReason.SCALED_TO_ZERO, zero_replicas.waits(tick)
    ready = f"{counts.ready} of {tick.written.replicas} replicas are ready"
    if counts.ready >= max(1, least):
        return _TRUE, StatusReason.SERVING, join(ready, replica_messages.cold(tick))
    wanted = f"{ready}, minReplicas is {least}"
    if least == 0:
        wanted = f"{ready}, {tick.route.held} requests are held"
    if counts.broken:
        why = replica_messages.detail(tick, PodState.BROKEN)
        return _FALSE, replica_messages.why_broken(tick), f"{wanted}; {why}"
    if counts.unschedulable:
        why = replica_messages.detail(tick, PodState.UNSCHEDULABLE)
        return _FALSE, StatusReason.REPLICAS_UNSCHEDULABLE, f"{wanted}; {why}"
    if counts.warming + counts.late:
        return (
            _FALSE,
            StatusReason.WARMING_UP,
            join(
                wanted,
                replica_messages.fetching(tick),
                replica_messages.starting(tick),
                replica_messages.gate(tick),
            ),
        )
    if failure := replica_messages.replica_failure(tick):
        return _FALSE, StatusReason.POD_CREATION_FORBIDDEN, f"{wanted}; {failure}"
    return _FALSE, StatusReason.NO_READY_REPLICAS, wanted


def _scaling_active(tick: TickResult) -> _Condition:
    if tick.written.refused is Step.VALIDATE:
        return _FALSE, StatusReason.INVALID_SPEC, tick.written.message
    if tick.conflicts.obstacle is not None:
        return _FALSE, tick.conflicts.obstacle.reason, tick.conflicts.obstacle.message
    if tick.failure is not None and tick.failure.kept:
        return _UNKNOWN, StatusReason.EVALUATION_FAILED, _failed(tick.failure)
    if tick.service.spec.scaling.mode == "External":
        message = (
            f"spec.replicas ({tick.service.spec.replicas}) is followed, because scaling.mode is "
            f"External; the decision ({tick.decision.replicas}) is advice"
        )
        return _FALSE, StatusReason.EXTERNALLY_SCALED, message
    if tick.service.spec.scaling.mode == "Recommend":
        message = "decisions are not written, because scaling.mode is Recommend"
        return _FALSE, StatusReason.RECOMMEND_ONLY, message
    if tick.is_at_zero:
        return _TRUE, StatusReason.SCALED_TO_ZERO, zero_replicas.waits(tick)
    if tick.is_collecting:
        return _UNKNOWN, StatusReason.COLLECTING_METRICS, COLLECTING
    if tick.decision.signals.freshness is Freshness.MISSING:
        return (
            _FALSE,
            StatusReason.METRICS_MISSING,
            "metrics are missing; the replica count is kept until they return",
        )
    return _TRUE, StatusReason.AUTO, "decisions are made and written"


def _failed(failure: DecisionFailure) -> str:
    """Say what the decision ended with, and what that costs."""
    message = f"the decision ended with {failure.text}; no replica is removed"
    if failure.restarted:
        return f"{message}, and what was learned is discarded"
    return message


def _able_to_scale(tick: TickResult) -> _Condition:
    if tick.written.refused is not None:
        return _FALSE, StatusReason.SCALE_FAILED, tick.written.message
    if tick.conflicts.obstacle is not None:
        return _FALSE, tick.conflicts.obstacle.reason, tick.conflicts.obstacle.message
    if tick.written.scaled or tick.written.created:
        message = f"{tick.written.replicas} replicas were requested"
        why = tick.written.unmarked
        unmarked = why and f"pods could not be marked to be removed first: {why}"
        return _TRUE, StatusReason.SCALED, join(message, unmarked)
    if tick.conflicts.overridden:
        return _TRUE, StatusReason.REPLICAS_OVERWRITTEN, tick.conflicts.overridden
    workload = tick.gathered.deployment or {}
    if is_paused(workload):
        message = (
            "the workload is paused, so template changes do not reach its pods: kubectl rollout"
        )
        return _TRUE, StatusReason.WORKLOAD_PAUSED, f"{message} resume"
    if tick.gathered.observation.rolling:
        return _TRUE, StatusReason.ROLLING_OUT, replica_messages.rollout(tick)
    return _TRUE, StatusReason.NOTHING_TO_SCALE, limit_conditions.nothing_to_scale(tick)


def _metrics_available(tick: TickResult) -> _Condition:
    signals = tick.decision.signals
    unread = join(*(f"{one.pod}: {one.why}" for one in tick.gathered.unread[:3]))
    covered = f"{signals.coverage:.0%} of the ready replicas have a recent sample"
    if tick.is_at_zero:
        return _TRUE, StatusReason.SCALED_TO_ZERO, zero_replicas.counts(tick)
    if not tick.gateway.fresh and not tick.gateway.begun and not tick.gateway.silent:
        return _UNKNOWN, StatusReason.COLLECTING_METRICS, COLLECTING
    if not tick.gateway.fresh:
        return _FALSE, StatusReason.METRICS_STALE, _no_gateway_metrics(tick)
    if signals.freshness is Freshness.FRESH and not tick.decision.counts.ready:
        return _TRUE, StatusReason.METRICS_FRESH, join(zero_replicas.counts(tick), unread)
    if signals.freshness is Freshness.FRESH:
        return _TRUE, StatusReason.METRICS_FRESH, join(covered, unread, _no_histogram(tick))
    if not tick.decision.counts.ready:
        return (
            _FALSE,
            StatusReason.NO_READY_REPLICAS,
            "no replica is ready, so there are no metrics",
        )
    if tick.is_collecting:
        return _UNKNOWN, StatusReason.COLLECTING_METRICS, join(COLLECTING, unread)
    if signals.freshness is Freshness.STALE:
        return _FALSE, StatusReason.METRICS_STALE, join(covered, unread)
    return _FALSE, StatusReason.METRICS_MISSING, join(covered, unread)


def _slo_met(tick: TickResult) -> _Condition:
    signal = tick.decision.signals.latency_s
    if signal.value is None or not signal.fresh:
        if tick.is_at_zero:
            return _UNKNOWN, StatusReason.SCALED_TO_ZERO, "no requests, so there is no latency"
        if not tick.decision.counts.ready:
            return _UNKNOWN, StatusReason.NO_READY_REPLICAS, "no replica is ready"
        seen = tick.gateway.signals
        if tick.is_collecting or (seen.in_flight.fresh and not seen.arrival_rps.fresh):
            return _UNKNOWN, StatusReason.COLLECTING_METRICS, COLLECTING
        known = tick.gateway.fresh and tick.decision.signals.arrival_rps.fresh
        if known and signal.value is None:
            if unmeasured := _no_histogram(tick):
                return _UNKNOWN, StatusReason.LATENCY_NOT_MEASURED, unmeasured
            idle = "no request completed in the stable window, so there is no latency"
            return _UNKNOWN, StatusReason.NO_TRAFFIC, idle
        return (
            _UNKNOWN,
            StatusReason.METRICS_MISSING,
            "metrics are missing, so the latency is not known",
        )
    latency, message = tick.service.spec.slo.latency, ""
    if tick.classes.judgement is not None:
        latency = None  # requests of all classes: each class has its own, among the tokens
    if latency is not None:
        measured = "above every bound" if math.isinf(signal.value) else duration_text(signal.value)
        where = " at the gateway" if tick.gateway.watched else ""
        message = f"p{latency.percentile} is {measured}{where}, the target is {latency.target}"
    message = join(message, *(one.message for one in tick.tokens))
    late = latency is not None and signal.value > latency.target.seconds
    if late or any(one.missed for one in tick.tokens):
        return _FALSE, StatusReason.ABOVE_TARGET, f"{message}; {_above_target_step(tick)}"
    if (unknown := class_conditions.unmeasured(tick)) is not None:
        return unknown
    if any(one.value_s is None for one in tick.tokens):
        return _UNKNOWN, StatusReason.LATENCY_NOT_MEASURED, message
    return _TRUE, StatusReason.WITHIN_TARGET, message


def _above_target_step(tick: TickResult) -> str:
    """Return what keeps the latency above its target, the first that applies."""
    decision = tick.decision
    for kind, find, good in _EXPLAIN_ABOVE_TARGET:
        if find(tick)[0] is not good:
            return f"see {kind}"
    if decision.counts.ready < decision.replicas:
        return f"{decision.counts.ready} of {decision.replicas} replicas are ready; wait for them"
    if any(one.missed for one in tick.tokens):
        return "capacity is increased until the token SLO is met"
    return (
        f"the model expects {decision.replicas} replicas to be enough (learned latency correction "
        f"{decision.correction:.3g}, measured over modelled); the correction adds replicas if it "
        "lasts"
    )


_LADDERS = {
    ConditionType.READY: _ready,
    ConditionType.SCALING_ACTIVE: _scaling_active,
    ConditionType.ABLE_TO_SCALE: _able_to_scale,
    ConditionType.SCALING_LIMITED: limit_conditions.scaling_limited,
    ConditionType.METRICS_AVAILABLE: _metrics_available,
    ConditionType.SLO_MET: _slo_met,
    ConditionType.SLO_FEASIBLE: feasibility_conditions.slo_feasible,
    ConditionType.DEMAND_VISIBLE: demand_conditions.demand_visible,
    ConditionType.SCALING_EFFECTIVE: demand_conditions.scaling_effective,
    ConditionType.CAPACITY_AVAILABLE: replica_conditions.capacity_available,
    ConditionType.REPLICAS_HEALTHY: replica_conditions.replicas_healthy,
    ConditionType.ROUTING_READY: routing_conditions.routing_ready,
}

_OF_WRITES = frozenset({ConditionType.ABLE_TO_SCALE, ConditionType.SCALING_ACTIVE})
_WRITE_FAILED = frozenset(
    {
        StatusReason.INVALID_SPEC,
        StatusReason.APPLY_FAILED,
        StatusReason.DEPLOYMENT_REPEATEDLY_OVERWRITTEN,
        StatusReason.NAMESPACE_TERMINATING,
    }
)

_EXPLAIN_ABOVE_TARGET = (
    (ConditionType.SLO_FEASIBLE, feasibility_conditions.slo_feasible, _TRUE),
    (ConditionType.SCALING_ACTIVE, _scaling_active, _TRUE),
    (ConditionType.SCALING_LIMITED, limit_conditions.scaling_limited, _FALSE),
    (ConditionType.CAPACITY_AVAILABLE, replica_conditions.capacity_available, _TRUE),
    (ConditionType.REPLICAS_HEALTHY, replica_conditions.replicas_healthy, _TRUE),
    (ConditionType.SCALING_EFFECTIVE, demand_conditions.scaling_effective, _TRUE),
)


def _no_histogram(tick: TickResult) -> str:
    """Say that the SLO cannot be checked; empty if the server measures latency."""
    server = tick.service.spec.runtime.server
    if server.latency is not None or tick.gateway.watched:
        return ""
    return f"{server.title} has no latency histogram: the batch cost alone determines the replicas"


def _no_gateway_metrics(tick: TickResult) -> str:
    """Say that the gateways' counts are missing, so that nothing is removed."""
    words = "client-side latency is unknown: no recent metrics from the gateways"
    return join(words, *tick.gateway.silent[:2])
