"""The condition SLOFeasible: whether an idle replica meets the target. Pure."""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.api.status_durations import duration_text
from headroom.controller.report.condition_result import (
    FALSE,
    TRUE,
    UNKNOWN,
    Judgement,
    TickResult,
    join,
)
from headroom.controller.report.token_conditions import token_feasibility


def slo_feasible(tick: TickResult) -> Judgement:
    """Say what the target needs, and what a sudden rise or a start from zero costs."""
    generation = tick.decision.generation
    if generation is not None and generation.identification.known:
        return token_feasibility(tick, generation)
    floor_s = tick.decision.floor_latency_s
    if floor_s is None:
        return UNKNOWN, StatusReason.COST_UNKNOWN, "the cost of a batch is not known yet"
    latency = tick.service.spec.slo.latency
    if latency is None:
        return UNKNOWN, StatusReason.COST_UNKNOWN, "the cost of an iteration is not known yet"
    message = f"an idle replica answers in {duration_text(floor_s)}, the target is {latency.target}"
    if not tick.more_cannot_help:
        return (
            TRUE,
            StatusReason.FEASIBLE,
            join(message, _sudden_rise(tick), _cold_start_misses(tick)),
        )
    hint = "more replicas cannot help: increase the target, or use a faster accelerator or model"
    return FALSE, StatusReason.SLO_INFEASIBLE, f"{message}; {hint}"


def _sudden_rise(tick: TickResult) -> str:
    """Return what a sudden rise in load means: beyond the minimum it waits for a cold start."""
    decision = tick.decision
    if decision.floor_rps is None or decision.cold_start_s is None:
        return ""
    floor = f"minReplicas ({decision.floor_replicas}) serve"
    if decision.floor_replicas == 1 and tick.service.spec.scaling.min_replicas == 0:
        floor = "one replica serves"
    return (
        f"{floor} {decision.floor_rps:.3g}/s within it; a sudden rise above that waits "
        f"{duration_text(decision.cold_start_s)} for replicas to start"
    )


def _cold_start_misses(tick: TickResult) -> str:
    """Return what scale to zero costs or would cost."""
    misses = tick.misses_per_cold_start
    if misses is None:
        return ""
    possible = tick.service.spec.scaling.min_replicas == 0
    which = "each start from zero makes" if possible else "with minReplicas 0 each start would make"
    return f"{which} about {misses:.2g} requests miss it"
