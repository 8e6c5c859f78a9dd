"""The status after a tick, and its parts on which users act. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headroom.api.service_status import status_rendering
from headroom.api.service_status.conditions import Conditions
from headroom.api.service_status.slo_status import SloStatus
from headroom.api.service_status.status import Status
from headroom.controller.act.write_result import WriteResult
from headroom.controller.report.conditions.condition_result import ConditionResult, TickResult
from headroom.controller.report.error_budget import ErrorBudget
from headroom.controller.report.state import ReportState
from headroom.controller.report.status_throttle import LastWrite, StatusKey
from headroom.scaling.values.decision import Decision


def status_after(
    budget: ErrorBudget, tick: TickResult, found: Conditions, checkpoint: dict[str, object]
) -> dict[str, Any]:
    """Return the status after a tick."""
    gateway = tick.gateway
    return status_rendering.build(
        generation=tick.service.generation,
        current=tick.written.replicas,
        selector=tick.gathered.selector,
        conditions=found,
        counts=tick.decision.counts,
        decision=tick.decision,
        gateway=(
            status_rendering.gateway_status(gateway.signals, gateway.missed_rps)
            if gateway.watched
            else None
        ),
        tokens={one.name: one.value_s for one in tick.tokens if not one.class_name},
        classes=tick.classes,
        generated=tick.generated,
        slo=_slo(budget, tick.service.spec.slo.objective, tick.decision),
        estimated_misses_per_cold_start=tick.misses_per_cold_start,
        checkpoint=checkpoint,
    )


def key_after(
    tick: TickResult, written: WriteResult, found: Iterable[ConditionResult]
) -> StatusKey:
    """Return the parts that decide when status is written.

    Messages and other measurements change at every tick and are written with the next refresh.
    """
    decision = tick.decision
    return StatusKey(
        urgent=(tick.service.generation, written, decision.replicas, decision.current),
        other=(
            (tick.preemption, tick.accelerators),
            (decision.direction, decision.reason),
            decision.counts,
            {one.waits_for.reason for one in tick.gathered.pods if one.waits_for is not None},
            tuple((one.kind, one.status, one.reason) for one in found),
        ),
        figures=(
            decision.signals.latency_s.value,
            decision.signals.arrival_rps.value,
            decision.utilization,
        ),
    )


def last_write(state: ReportState) -> LastWrite | None:
    """Return the last status, written by this process or read; None before the first decision."""
    key = state.key
    if key is None:
        before = Status.read(state.status)
        if before.decision is not None:
            asked, stood = before.decision.replicas, before.decision.current
            acted = WriteResult(replicas=before.replicas)
            key = StatusKey(urgent=(before.observed_generation, acted, asked, stood), other=None)
    if key is None:
        return None
    return LastWrite(key=key, written_s=state.written_s, known_s=state.known_s)


def _slo(budget: ErrorBudget, objective: float, decision: Decision) -> SloStatus:
    attainment, burn_rate = budget.attainment, budget.burn_rate(objective)
    return SloStatus(
        attainment=None if attainment is None else round(attainment, 5),
        windows_met=budget.kept,
        windows_missed=budget.missed,
        error_budget_remaining=round(budget.remaining(objective), 3),
        burn_rate=None if burn_rate is None else round(burn_rate, 2),
        late_share=None if decision.late_share is None else round(decision.late_share, 4),
        margin=round(decision.margin, 2),
    )
