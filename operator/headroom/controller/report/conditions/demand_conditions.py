"""The conditions about demand and obstacles: is every request counted, and do replicas help? Pure.

Both are damped (`damping.py`): what they report may differ from one tick to the next.
"""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionType
from headroom.api.service_status.demand_status import demand_status
from headroom.controller.report.conditions import zero_replicas
from headroom.controller.report.conditions.condition_result import (
    COLLECTING,
    FALSE,
    TRUE,
    UNKNOWN,
    Judgement,
    TickResult,
    join,
)
from headroom.scaling.values.demand import DemandKnown, Obstacle
from headroom.scaling.values.replica_defect import Defect
from headroom.scaling.values.signals import Freshness

_HIDDEN = {
    DemandKnown.AT_LEAST: (
        StatusReason.HIDDEN_DEMAND,
        "clients wait for saturated replicas before they send more",
    ),
    DemandKnown.INCLUDES_RETRIES: (
        StatusReason.RETRIES_COUNTED,
        "many requests miss, and clients send them again",
    ),
}
_OBSTACLES = {
    Obstacle.CONNECTIONS_PINNED: (
        StatusReason.CONNECTIONS_PINNED,
        "connections stay with saturated replicas, and other ready ones get hardly any request",
    ),
    Obstacle.DOWNSTREAM_LIMIT: (
        StatusReason.DOWNSTREAM_LIMIT,
        "replicas were added, and together they serve no more than before",
    ),
}


def demand_visible(tick: TickResult) -> Judgement:
    """Return whether the counted arrivals are the demand of the clients."""
    demand = demand_status(tick.decision)
    if tick.is_at_zero:
        return TRUE, StatusReason.SCALED_TO_ZERO, zero_replicas.counts(tick)
    if unknown := _unknown(tick):
        return unknown
    if demand is not None and tick.decision.demand.known in _HIDDEN:
        reason, why = _HIDDEN[tick.decision.demand.known]
        return FALSE, reason, f"demand is {demand.sentence}; {why}"
    return TRUE, StatusReason.DEMAND_COUNTED, "every request is counted once"


def scaling_effective(tick: TickResult) -> Judgement:
    """Return whether more replicas can bring latency below its target."""
    if tick.more_cannot_help:
        message = f"an idle replica exceeds the target; see {ConditionType.SLO_FEASIBLE}"
        return FALSE, StatusReason.SLO_INFEASIBLE, message
    evicted = tick.decision.replacement
    if evicted is not None and evicted.defect is Defect.OVERLOADED:
        names = {one.pod.uid: one.name for one in tick.gathered.pods}
        what = f"{names.get(evicted.pod, 'a replica')} {evicted.detail}: {evicted.action}"
        return FALSE, StatusReason.CONNECTIONS_PINNED, join(what, tick.written.unevicted)
    obstacle = tick.decision.obstacle
    if obstacle in _OBSTACLES:
        reason, what = _OBSTACLES[obstacle]
        return FALSE, reason, join(what, tick.decision.obstacle_detail)
    if not tick.is_at_zero and (unknown := _unknown(tick)):
        return unknown
    return TRUE, StatusReason.NO_OBSTACLE, "nothing was found that would make more replicas useless"


def _unknown(tick: TickResult) -> Judgement | None:
    """Return why nothing is known; None where arrivals are known."""
    if tick.decision.signals.arrival_rps.freshness is not Freshness.MISSING:
        return None
    if not tick.decision.counts.ready:
        return UNKNOWN, StatusReason.NO_READY_REPLICAS, "no replica is ready"
    if tick.is_collecting:
        return UNKNOWN, StatusReason.COLLECTING_METRICS, COLLECTING
    missing = "metrics are missing, so the demand is not known"
    return UNKNOWN, StatusReason.METRICS_MISSING, missing
