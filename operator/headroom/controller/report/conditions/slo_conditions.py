"""The condition SLOMet, with the cause of a latency above its target. Pure."""

from __future__ import annotations

import math

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionType
from headroom.api.service_status.status_durations import duration_text
from headroom.controller.report.conditions import (
    class_conditions,
    demand_conditions,
    feasibility_conditions,
    limit_conditions,
    replica_conditions,
)
from headroom.controller.report.conditions.condition_result import (
    COLLECTING,
    FALSE,
    TRUE,
    UNKNOWN,
    Judgement,
    TickResult,
    join,
)
from headroom.controller.report.conditions.metrics_conditions import no_histogram
from headroom.controller.report.conditions.scaling_conditions import scaling_active
from headroom.scaling.values.signals import Freshness


def slo_met(tick: TickResult) -> Judgement:
    """Say whether the targets are met."""
    signal = tick.decision.signals.latency_s
    if signal.value is None or not signal.fresh:
        if tick.is_at_zero:
            return UNKNOWN, StatusReason.SCALED_TO_ZERO, "no requests, so there is no latency"
        if not tick.decision.counts.ready:
            return UNKNOWN, StatusReason.NO_READY_REPLICAS, "no replica is ready"
        seen = tick.gateway.signals
        if tick.is_collecting or (seen.in_flight.fresh and not seen.arrival_rps.fresh):
            return UNKNOWN, StatusReason.COLLECTING_METRICS, COLLECTING
        known = tick.gateway.fresh and tick.decision.signals.arrival_rps.fresh
        if known and signal.value is None:
            if unmeasured := no_histogram(tick):
                return UNKNOWN, StatusReason.LATENCY_NOT_MEASURED, unmeasured
            idle = "no request completed in the stable window, so there is no latency"
            return UNKNOWN, StatusReason.NO_TRAFFIC, idle
        if tick.decision.signals.freshness is Freshness.STALE:
            stale = "metrics are stale, so the latency is not known"
            return UNKNOWN, StatusReason.METRICS_STALE, stale
        missing = "metrics are missing, so the latency is not known"
        return UNKNOWN, StatusReason.METRICS_MISSING, missing
    latency, message = tick.service.spec.slo.latency, ""
    undecided_s = tick.decision.signals.undecided_s
    if tick.classes.judgement is not None:
        latency = undecided_s = None  # each class has its own promise, among the tokens
    if latency is not None and undecided_s is not None:
        message = _undecided(f"p{latency.percentile}", str(latency.target), undecided_s)
    elif latency is not None:
        measured = "above every bound" if math.isinf(signal.value) else duration_text(signal.value)
        where = " at the gateway" if tick.gateway.watched else ""
        message = f"p{latency.percentile} is {measured}{where}, the target is {latency.target}"
    message = join(message, *(one.message for one in tick.tokens))
    late = latency is not None and undecided_s is None and signal.value > latency.target.seconds
    if late or any(one.missed for one in tick.tokens):
        return FALSE, StatusReason.ABOVE_TARGET, f"{message}; {_above_target_step(tick)}"
    if (unknown := class_conditions.unmeasured(tick)) is not None:
        return unknown
    if undecided_s is not None or any(not one.decided for one in tick.tokens):
        return UNKNOWN, StatusReason.LATENCY_NOT_MEASURED, message
    return TRUE, StatusReason.WITHIN_TARGET, message


def _undecided(percentile: str, target: str, bounds_s: tuple[float, float]) -> str:
    """Return that the server's histogram does not tell whether the target is met."""
    lower_s, upper_s = bounds_s
    between = f"between {duration_text(lower_s)} and {duration_text(upper_s)}"
    where = f"above {duration_text(lower_s)}" if math.isinf(upper_s) else between
    return f"{percentile} and the target of {target} are {where}, in one bucket of the histogram"


def _above_target_step(tick: TickResult) -> str:
    """Return the cause of a latency above its target, the first that applies."""
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


_EXPLAIN_ABOVE_TARGET = (
    (ConditionType.SLO_FEASIBLE, feasibility_conditions.slo_feasible, TRUE),
    (ConditionType.SCALING_ACTIVE, scaling_active, TRUE),
    (ConditionType.SCALING_LIMITED, limit_conditions.scaling_limited, FALSE),
    (ConditionType.CAPACITY_AVAILABLE, replica_conditions.capacity_available, TRUE),
    (ConditionType.REPLICAS_HEALTHY, replica_conditions.replicas_healthy, TRUE),
    (ConditionType.SCALING_EFFECTIVE, demand_conditions.scaling_effective, TRUE),
)
