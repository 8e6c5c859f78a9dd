"""Values of a service's metrics: its decision, its gateways, its tokens and its classes. Pure.

None is a figure that is not known: its series is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from headroom.api import InferenceService
from headroom.api.reasons import StatusReason
from headroom.ops import service_families as families
from headroom.scaling import Decision, DemandKnown, Obstacle
from headroom.scaling.generation.promises.class_judgement import ClassState
from headroom.scaling.generation.promises.classes import SERVICE
from headroom.scaling.generation.promises.token_promises import worst_ratio
from headroom.scaling.values.token_decision import GenerationDecision, GenerationMeasurement
from headroom.scaling.values.tokens import Binding


class Figure(NamedTuple):
    """The value of one series."""

    name: str
    value: float | None
    label: str = ""


def of_decision(service: InferenceService, decision: Decision) -> Iterator[Figure]:
    """Yield a decision's inputs and its result."""
    yield from _replicas(decision)
    yield from _measurements(service, decision)
    for known in DemandKnown:
        yield Figure(families.DEMAND_KNOWN, float(decision.demand.known is known), known.value)
    for obstacle in Obstacle:
        yield Figure(families.OBSTACLE, float(decision.obstacle is obstacle), obstacle.value)
    infeasible = float(not decision.feasible)
    yield Figure(families.OBSTACLE, infeasible, StatusReason.SLO_INFEASIBLE.value)


def _replicas(decision: Decision) -> Iterator[Figure]:
    counts = decision.counts
    numbers = {
        "desired": decision.replicas,
        "current": decision.current,
        "ready": counts.ready,
        "warming": counts.warming,
        "late": counts.late,
        "unschedulable": counts.unschedulable,
        "broken": counts.broken,
        "terminating": counts.terminating,
    }
    for state, number in numbers.items():
        yield Figure(families.REPLICAS, number, state)


def _measurements(service: InferenceService, decision: Decision) -> Iterator[Figure]:
    signals, demand, slo = decision.signals, decision.demand, service.spec.slo
    yield Figure(families.ARRIVALS, signals.arrival_rps.value)
    yield Figure(families.DEMAND, demand.rate_rps)
    yield Figure(families.DEMAND_AT_MOST, demand.at_most_rps)
    yield Figure(families.MARGIN, decision.margin)
    yield Figure(families.LATE_REQUESTS, decision.late_share)
    yield Figure(families.WAITING, signals.waiting.value)
    yield Figure(families.LATENCY, signals.latency_s.value)
    target_s = None if slo.latency is None else slo.latency.target.seconds
    yield Figure(families.LATENCY_TARGET, target_s)
    yield Figure(families.UTILIZATION, decision.utilization)
    yield Figure(families.OBJECTIVE, slo.objective)
    yield Figure(families.CEILING, slo.utilization_ceiling)
    yield Figure(families.DECIDED_AT, decision.time_s)


def of_gateways(rates: Mapping[str, float | None]) -> Iterator[Figure]:
    """Yield the rates counted at the gateways; no series without a gateway."""
    yield Figure(families.GATEWAY_ARRIVALS, rates.get("arrived"))
    yield Figure(families.GATEWAY_MISSES, rates.get("missed"))


def of_token_slos(
    service: InferenceService, measured: Mapping[str, float | None], capacity_factor: float
) -> Iterator[Figure]:
    """Yield the measured latency of each token SLO; no series without one."""
    slo = service.spec.slo
    objectives = {
        "timeToFirstToken": slo.time_to_first_token,
        "timePerOutputToken": slo.time_per_output_token,
    }
    for name, objective in objectives.items():
        target_s = None if objective is None else objective.target.seconds
        yield Figure(families.OBJECTIVE_TARGET, target_s, name)
        yield Figure(families.OBJECTIVE_LATENCY, measured.get(name), name)
    yield Figure(families.CAPACITY_FACTOR, capacity_factor if measured else None)


def of_generation(
    decision: GenerationDecision | None, measured: GenerationMeasurement | None
) -> Iterator[Figure]:
    """Yield tokens per second, KV memory, capacity and what binds; nothing without tokens."""
    found = measured or GenerationMeasurement()
    yield Figure(families.TOKENS, found.generated_tokens_per_s, "generated")
    yield Figure(families.TOKENS, found.prompt_tokens_per_s, "computed")
    yield Figure(families.KV_USED, found.kv_used_share)
    capacity_rps = None if decision is None else decision.capacity_rps
    yield Figure(families.GENERATING_CAPACITY, capacity_rps)
    binding = None if decision is None else decision.binding
    for one in Binding:
        binds = None if binding is None else float(one is binding)
        yield Figure(families.BINDING, binds, one.value)


def of_classes(classes: ClassState) -> Iterator[Figure]:
    """Yield the attainment of each class with promises of its own; the others have no series."""
    for one in classes.judgement.classes if classes.judgement is not None else ():
        name = one.promise.name
        if name != SERVICE:
            yield Figure(families.CLASS_ATTAINMENT, one.attainment, name)
            yield Figure(families.CLASS_USED, worst_ratio(one.window), name)


def of_minute(*, kept: bool) -> Iterator[Figure]:
    """Yield the increase of each count by a one-minute SLO window with traffic.

    Both outcomes are there from the first minute on, so that a rate exists.
    """
    yield Figure(families.SLO_WINDOWS, float(kept), "true")
    yield Figure(families.SLO_WINDOWS, float(not kept), "false")
