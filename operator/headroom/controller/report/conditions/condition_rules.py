"""The conditions of a tick. Pure.

One small function per condition, each a ladder whose first match wins. A condition that is not as
it should be names the next step.
"""

from __future__ import annotations

from collections.abc import Iterable

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import Conditions, ConditionType
from headroom.controller.report.conditions import (
    demand_conditions,
    feasibility_conditions,
    limit_conditions,
    metrics_conditions,
    pair_conditions,
    replica_conditions,
    routing_conditions,
    scaling_conditions,
    slo_conditions,
)
from headroom.controller.report.conditions.condition_result import (
    ConditionResult,
    TickResult,
    condition_result,
)
from headroom.controller.report.conditions.next_steps import steps_of


def of_tick(tick: TickResult) -> list[ConditionResult]:
    """Return every condition as of this tick."""
    ready, service = tick.decision.counts.ready, tick.service
    steps = steps_of(service.spec.scaling.mode, tick.written.replicas, ready, service.namespace)
    return [condition_result(kind, *find(tick), steps) for kind, find in _LADDERS.items()]


def before_write(
    found: Iterable[ConditionResult], stored: Conditions, generation: int
) -> tuple[list[ConditionResult], frozenset[ConditionType]]:
    """Return the conditions of a tick before its writes, and which of them are the stored ones.

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


_LADDERS = {
    ConditionType.READY: scaling_conditions.ready,
    ConditionType.SCALING_ACTIVE: scaling_conditions.scaling_active,
    ConditionType.ABLE_TO_SCALE: scaling_conditions.able_to_scale,
    ConditionType.SCALING_LIMITED: limit_conditions.scaling_limited,
    ConditionType.METRICS_AVAILABLE: metrics_conditions.metrics_available,
    ConditionType.SLO_MET: slo_conditions.slo_met,
    ConditionType.SLO_FEASIBLE: feasibility_conditions.slo_feasible,
    ConditionType.DEMAND_VISIBLE: demand_conditions.demand_visible,
    ConditionType.SCALING_EFFECTIVE: demand_conditions.scaling_effective,
    ConditionType.CAPACITY_AVAILABLE: replica_conditions.capacity_available,
    ConditionType.REPLICAS_HEALTHY: replica_conditions.replicas_healthy,
    ConditionType.ROUTING_READY: routing_conditions.routing_ready,
    ConditionType.PARTNER_SEEN: pair_conditions.partner_seen,
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
