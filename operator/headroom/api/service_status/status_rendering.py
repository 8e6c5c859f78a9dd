"""Render the status of an InferenceService from a decision and what was observed. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headroom.api.service_status.class_status import class_statuses
from headroom.api.service_status.conditions import Conditions, reason_of, shortened
from headroom.api.service_status.cost_status import ColdStartStatus, ModelStatus
from headroom.api.service_status.decision_status import (
    CounterfactualStatus,
    DecisionStatus,
    RecommendationStatus,
)
from headroom.api.service_status.demand_status import demand_status
from headroom.api.service_status.generation_status import generation_status
from headroom.api.service_status.partner_status import partner_status
from headroom.api.service_status.signals_status import GatewayStatus, SignalsStatus
from headroom.api.service_status.slo_status import SloStatus
from headroom.api.service_status.status import MAX_CHECKPOINT, Status
from headroom.api.service_status.status_durations import duration_text
from headroom.api.service_status.status_types import rounded
from headroom.api.timestamps import rfc3339
from headroom.scaling.generation.promises.class_judgement import ClassState
from headroom.scaling.values.decision import Decision, ReplicaCounts
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.signals import Signal, Signals
from headroom.scaling.values.token_decision import GenerationMeasurement

NO_CLASSES = ClassState()


def build(
    *,
    generation: int,
    current: int,
    selector: str,
    conditions: Conditions,
    counts: ReplicaCounts,
    decision: Decision | None = None,
    slo: SloStatus | None = None,
    tokens: Mapping[str, float | None] | None = None,
    generated: GenerationMeasurement | None = None,
    classes: ClassState = NO_CLASSES,
    gateway: GatewayStatus | None = None,
    checkpoint: Mapping[str, Any] | None = None,
    estimated_misses_per_cold_start: float | None = None,
) -> dict[str, Any]:
    """Render the whole status; without a decision what depends on one is left out.

    A checkpoint larger than the schema admits is left out too: the next start then holds for a
    window, whereas a status that the API server refuses would say nothing at all.
    """
    memory = None if checkpoint is None else json.dumps(checkpoint, separators=(",", ":"))
    status = Status(
        observed_generation=generation,
        replicas=current,
        ready_replicas=counts.ready,
        warming_replicas=counts.warming + counts.late,
        unschedulable_replicas=counts.unschedulable,
        broken_replicas=counts.broken,
        selector=selector,
        reason=reason_of(conditions, decision.reason if decision else None),
        decision=_decision(decision) if decision else None,
        signals=_signals(decision, tokens or {}, gateway) if decision else None,
        demand=demand_status(decision) if decision else None,
        model=_model(decision.cost) if decision and decision.cost else None,
        generation=(
            generation_status(decision.generation, generated, classes.binding) if decision else None
        ),
        classes=class_statuses(classes) or None,
        partner=partner_status(decision.pair) if decision else None,
        cold_start=_cold_start(decision, estimated_misses_per_cold_start) if decision else None,
        slo=slo,
        checkpoint=memory if memory is not None and len(memory) <= MAX_CHECKPOINT else None,
        conditions=conditions,
    )
    return status.manifest()


def _decision(decision: Decision) -> DecisionStatus:
    most = max(decision.recommendations, key=lambda r: r.replicas, default=None)
    return DecisionStatus(
        replicas=decision.replicas,
        current=decision.current,
        direction=decision.direction,
        reason=decision.reason,
        strongest_rule=most.rule if most else decision.reason,
        message=shortened(decision.message),
        time=rfc3339(decision.time_s),
        counterfactuals=tuple(
            CounterfactualStatus(
                replicas=c.replicas,
                latency=duration_text(c.latency_s),
                utilization=rounded(c.utilization),
            )
            for c in decision.counterfactuals
        ),
        recommendations=tuple(
            RecommendationStatus(rule=r.rule, replicas=r.replicas, detail=shortened(r.detail))
            for r in decision.recommendations
        ),
    )


def gateway_status(signals: Signals, missed_rps: float | None) -> GatewayStatus:
    """Render what gateways count."""
    return GatewayStatus(
        arrivals_per_second=_value(signals.arrival_rps),
        missed_per_second=rounded(missed_rps),
        in_flight=_value(signals.in_flight),
        freshness=signals.in_flight.freshness,
    )


def _signals(
    decision: Decision, tokens: Mapping[str, float | None], gateway: GatewayStatus | None
) -> SignalsStatus:
    signals = decision.signals
    latency_s = signals.latency_s.value
    return SignalsStatus(
        arrivals_per_second=_value(signals.arrival_rps),
        waiting=_value(signals.waiting),
        latency=_text(latency_s),
        latency_source=None if latency_s is None else "Gateway" if gateway else "Replicas",
        gateway=gateway,
        time_to_first_token=_text(tokens.get("timeToFirstToken")),
        time_per_output_token=_text(tokens.get("timePerOutputToken")),
        utilization=rounded(decision.utilization),
        freshness=signals.freshness,
    )


def _model(cost: CostModel) -> ModelStatus:
    return ModelStatus(
        fixed_cost=duration_text(cost.fixed_s),
        per_item_cost=duration_text(cost.per_item_s),
        max_batch=cost.max_batch,
        slots=cost.slots,
    )


def _cold_start(decision: Decision, estimated_misses: float | None) -> ColdStartStatus | None:
    if decision.cold_start_s is None:
        return None
    misses = None if estimated_misses is None else float(f"{estimated_misses:.2g}")
    return ColdStartStatus(
        p90=duration_text(decision.cold_start_s), estimated_misses_per_cold_start=misses
    )


def _text(seconds: float | None) -> str | None:
    return None if seconds is None else duration_text(seconds)


def _value(signal: Signal) -> float | None:
    return rounded(signal.value)
