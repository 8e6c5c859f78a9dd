"""Replicas for an arrival rate: for latency, for the ceiling, and what one more or less does."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.planner.ceiling import rounded_up
from headroom.planner.demand import Service
from headroom.planner.errors import ImpossiblePlan, positive
from headroom.scaling.values import Reason

HOURS_PER_DAY = 24.0
PERCENTILES = (0.50, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What so many replicas would do with the arrivals as they are."""

    replicas: int
    utilization: float
    latency_s: tuple[float, ...]
    """One per PERCENTILES; inf where the arrivals cannot be carried."""
    promised_s: float
    """The promised percentile."""
    holds: bool
    """Whether the promise is kept and the ceiling is not passed."""
    gpu_hours_per_day: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPlan:
    """The fewest replicas that hold the promise below the ceiling, and their neighbours."""

    service: Service
    arrival_rps: float
    by_latency: int | None
    """None where no latency is promised."""
    by_utilization: int
    fewer: Expectation | None
    """With one less; None below one replica."""
    chosen: Expectation
    more: Expectation
    carries_rps: float
    """The most that the chosen replicas carry within promise and ceiling."""

    @property
    def replicas(self) -> int:
        """The answer."""
        return self.chosen.replicas

    @property
    def binding(self) -> Reason:
        """Which of the two rules asks for that many."""
        if self.by_latency is not None and self.by_latency > self.by_utilization:
            return Reason.LATENCY_MODEL
        return Reason.UTILIZATION_CEILING


def plan_replicas(service: Service, arrival_rps: float) -> ReplicaPlan:
    """Size the service for a constant Poisson rate.

    Headroom counts in sizing and not in what is expected: the table shows today's arrivals.
    Raises ImpossiblePlan where no number of replicas keeps the promise.
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
    """Return what latency needs (None: none is promised) and what the ceiling needs.

    Raises ImpossiblePlan as plan_replicas does.
    """
    positive("the arrival rate", arrival_rps, "give requests per second")
    usable_rps = service.ceiling * service.cost.full_batch_rps
    by_utilization = rounded_up(arrival_rps * (1 + service.headroom) / usable_rps)
    return _by_latency(service, arrival_rps), by_utilization


def expectation(service: Service, arrival_rps: float, replicas: int) -> Expectation:
    """Say what so many replicas would do with this rate."""
    utilization = arrival_rps / (replicas * service.cost.full_batch_rps)
    promised_s = service.tail(service.percentile).latency_s(arrival_rps, replicas)
    kept = service.target_s is None or promised_s <= service.target_s
    return Expectation(
        replicas=replicas,
        utilization=utilization,
        latency_s=tuple(service.tail(p).latency_s(arrival_rps, replicas) for p in PERCENTILES),
        promised_s=promised_s,
        holds=kept and utilization <= service.ceiling,
        gpu_hours_per_day=HOURS_PER_DAY * replicas * service.gpus_per_replica,
    )


def carried_rps(service: Service, replicas: int) -> float:
    """Return the most that so many replicas carry within promise and ceiling together."""
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
            f"p{100 * service.percentile:g} within {1000 * service.target_s:.4g} ms is possible, "
            f"received a cost whose p{100 * service.percentile:g} is above that when idle: "
            "promise more time, a lower percentile, or a steadier service time"
        )
    return max(1, replicas)
