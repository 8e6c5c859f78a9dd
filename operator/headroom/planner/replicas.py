"""Replicas for an arrival rate, by latency and by the ceiling, and one more or fewer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.planner.ceiling import rounded_up
from headroom.planner.demand import Service
from headroom.planner.errors import ImpossiblePlan, positive
from headroom.scaling.values.decision_reason import Reason

HOURS_PER_DAY = 24.0
PERCENTILES = (0.50, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The expected utilization and latency of a number of replicas."""

    replicas: int
    utilization: float
    latency_s: tuple[float, ...]
    """One per PERCENTILES; inf where the arrivals cannot be carried."""
    slo_latency_s: float
    """The percentile of the SLO."""
    holds: bool
    """Whether the target and the ceiling are met."""
    gpu_hours_per_day: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPlan:
    """The fewest replicas that meet the target below the ceiling, and one more and fewer."""

    service: Service
    arrival_rps: float
    by_latency: int | None
    """None without a latency target."""
    by_utilization: int
    fewer: Expectation | None
    """With one fewer; None for one replica."""
    chosen: Expectation
    more: Expectation
    carries_rps: float
    """The highest rate of the chosen replicas within target and ceiling."""

    @property
    def replicas(self) -> int:
        """Return the chosen number."""
        return self.chosen.replicas

    @property
    def binding(self) -> Reason:
        """Return which of the two rules requires that many."""
        if self.by_latency is not None and self.by_latency > self.by_utilization:
            return Reason.LATENCY_MODEL
        return Reason.UTILIZATION_CEILING


def plan_replicas(service: Service, arrival_rps: float) -> ReplicaPlan:
    """Size the service for a constant Poisson rate.

    Headroom counts for sizing and not for the expectation, which is for the present arrivals.
    Raises ImpossiblePlan where no number of replicas meets the target.
    """
    by_latency, by_utilization = needs(service, arrival_rps)
    replicas = max(by_latency or 1, by_utilization)
    return ReplicaPlan(
        service=service,
        arrival_rps=arrival_rps,
        by_latency=by_latency,
        by_utilization=by_utilization,
        fewer=expectation(service, arrival_rps, replicas - 1) if replicas > 1 else None,
        chosen=expectation(service, arrival_rps, replicas),
        more=expectation(service, arrival_rps, replicas + 1),
        carries_rps=carried_rps(service, replicas),
    )


def needs(service: Service, arrival_rps: float) -> tuple[int | None, int]:
    """Return the replicas for the latency (None: no target) and for the ceiling.

    Raises ImpossiblePlan as plan_replicas does.
    """
    positive("the arrival rate", arrival_rps, "Give requests per second")
    usable_rps = service.ceiling * service.cost.full_batch_rps
    by_utilization = rounded_up(arrival_rps * (1 + service.headroom) / usable_rps)
    return _by_latency(service, arrival_rps), by_utilization


def expectation(service: Service, arrival_rps: float, replicas: int) -> Expectation:
    """Return the expectation for this number of replicas at this rate."""
    utilization = arrival_rps / (replicas * service.cost.full_batch_rps)
    slo_latency_s = service.tail(service.percentile).latency_s(arrival_rps, replicas)
    kept = service.target_s is None or slo_latency_s <= service.target_s
    return Expectation(
        replicas=replicas,
        utilization=utilization,
        latency_s=tuple(service.tail(p).latency_s(arrival_rps, replicas) for p in PERCENTILES),
        slo_latency_s=slo_latency_s,
        holds=kept and utilization <= service.ceiling,
        gpu_hours_per_day=HOURS_PER_DAY * replicas * service.gpus_per_replica,
    )


def carried_rps(service: Service, replicas: int) -> float:
    """Return the highest rate of this number of replicas within target and ceiling."""
    limit_rps = service.ceiling * service.cost.full_batch_rps
    if service.target_s is not None:
        by_latency_rps = service.tail(service.percentile).capacity_rps(service.target_s, replicas)
        limit_rps = min(limit_rps, by_latency_rps)
    return replicas * limit_rps


def _by_latency(service: Service, arrival_rps: float) -> int | None:
    if service.target_s is None:
        return None
    tail = service.tail(service.percentile)
    replicas = tail.replicas_for(arrival_rps, service.target_s, 1 + service.headroom)
    if replicas is None or math.isinf(tail.latency_s(arrival_rps, max(1, replicas))):
        raise ImpossiblePlan(
            f"the latency target must be above the p{100 * service.percentile:g} of an idle "
            f"replica; got {1000 * service.target_s:.4g} ms. "
            "Increase the target, lower the percentile, or use a steadier service time."
        )
    return max(1, replicas)
