"""The condition SLOFeasible: whether an idle replica meets the target. Pure."""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.api.service_status.status_durations import duration_text
from headroom.controller.report.conditions.condition_result import (
    FALSE,
    TRUE,
    UNKNOWN,
    Judgement,
    TickResult,
    join,
)
from headroom.controller.report.conditions.token_conditions import token_feasibility


def slo_feasible(tick: TickResult) -> Judgement:
    """Judge the target, and name the cost of a sudden rise or of a start from zero."""
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
    if not tick.more_cannot_help and (exceeded := _batch_size_exceeded(tick)):
        return UNKNOWN, StatusReason.BATCH_SIZE_EXCEEDED, exceeded
    if not tick.more_cannot_help:
        return (
            TRUE,
            StatusReason.FEASIBLE,
            join(message, _sudden_rise(tick), _cold_start_misses(tick)),
        )
    hint = "more replicas cannot help: increase the target, or use a faster accelerator or model"
    return FALSE, StatusReason.SLO_INFEASIBLE, f"{message}; {hint}"


_TOO_MANY, _BEYOND_DOUBT = 20.0, 1.01
"""Requests above what the batches can hold, also as a share: a page may count requests a moment
before their batch."""


def _batch_size_exceeded(tick: TickResult) -> str:
    """Return the evidence that batches are larger than stated: a mean above the maximum.

    Replicas enough for the stated maximum seldom form larger batches. Worked: 6180 requests in 6000
    batches are only 1.03 in each, and 180 more than batches of 1 can hold. A mean below the maximum
    says nothing: little load fills no batch.
    """
    for sample in tick.gathered.observation.samples:
        if sample.generation is not None or sample.max_batch is None:
            continue
        most = sample.max_batch * sample.batches
        if sample.batch_items > max(most + _TOO_MANY, _BEYOND_DOUBT * most) and most > 0.0:
            mean = sample.batch_items / sample.batches
            return (
                f"the server forms batches of {mean:.3g} requests on average, and "
                f"runtime.maxBatchSize states at most {sample.max_batch}"
            )
    return ""


def _sudden_rise(tick: TickResult) -> str:
    """Return the effect of a sudden rise in load: beyond the minimum it waits for a cold start."""
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
    """Return the misses that scale to zero costs or would cost, as text."""
    misses = tick.misses_per_cold_start
    if misses is None:
        return ""
    possible = tick.service.spec.scaling.min_replicas == 0
    which = "each start from zero makes" if possible else "with minReplicas 0 each start would make"
    return f"{which} about {misses:.2g} requests miss it"
