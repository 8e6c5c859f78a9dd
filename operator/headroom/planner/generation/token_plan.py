"""Plans a service that generates: from token lengths, a rate and a cost to replicas and money.

The model is that of the decision (`scaling/generation`), so a plan and a running service agree
where the cost is the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from headroom.planner.ceiling import rounded_up
from headroom.planner.errors import ImpossiblePlan, positive
from headroom.planner.generation.generating_service import GeneratingService, check_service
from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.generation.replica_model.occupancy import occupancy_of
from headroom.scaling.generation.replica_model.replica import IDLE_RPS, MEMORY_PERCENTILE
from headroom.scaling.generation.replica_model.work import DEFAULT_ITERATION_TOKENS
from headroom.scaling.mathematics.bisection import smallest
from headroom.scaling.values.tokens import Binding

SECONDS_PER_HOUR = 3600.0
HOURS_PER_DAY = 24.0
MILLION = 1e6
ROUNDING = 0.01
"""Tolerance of a promise: capacities are found to within 0.05 %, and percentiles are steep
there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPlan:
    """Replicas for a rate, the bound of each, and their cost."""

    replicas: int
    binding: Binding
    capacity_rps: float
    """Capacity of each replica."""
    bounds_rps: tuple[tuple[Binding, float], ...]
    """Within each bound alone, the lowest first."""
    infeasible: tuple[tuple[Binding, float], ...]
    """Promises that an idle replica breaks, with the lowest time that it keeps."""
    missed: tuple[tuple[Binding, float, int], ...]
    """Other promises that the replicas are expected to break, because most of what is promised is
    the time of the prompt itself: the expected time, and the replicas that would keep it."""
    sequences: float
    """Sequences that decode at once at one replica, at `MEMORY_PERCENTILE`."""
    memory_share: float | None
    """Share of the KV tokens, at `MEMORY_PERCENTILE`."""
    engine_share: float
    first_token_s: float
    """The promised percentile, or the service's, at the planned load."""
    output_token_s: float
    gpu_hours_per_day: float
    price_per_million_tokens: float | None
    """Price of generated tokens, at this rate around the clock; None without a price."""


def plan_generation(service: GeneratingService, arrival_rps: float) -> GenerationPlan:
    """Return the replicas that the decision would have at this rate.

    Promises that an idle replica breaks are left out; `missed` has those that it nearly breaks.
    Raises ImpossiblePlan for numbers that no service can have.
    """
    positive("the arrival rate", arrival_rps, "Give requests per second")
    check_service(service)
    fleet = service.fleet()
    usable_rps = service.ceiling * fleet.capacity.full_rps
    replicas = _replicas(service, fleet, arrival_rps)
    bounds = {**fleet.capacity.by_bound(replicas), Binding.UTILIZATION: usable_rps}
    binding = min(bounds, key=lambda one: bounds[one])
    per_replica_rps = arrival_rps / replicas
    replica = fleet.capacity.replica
    occupancy = occupancy_of(replica.work, per_replica_rps)

    def expected_s(bound: Binding) -> float:
        target = replica.promised.get(bound)
        percentile = service.percentile if target is None else target.percentile
        return replica.percentile_s(bound, percentile, per_replica_rps, replicas)

    return GenerationPlan(
        replicas=replicas,
        binding=binding,
        capacity_rps=bounds[binding],
        bounds_rps=tuple(sorted(bounds.items(), key=lambda item: item[1])),
        infeasible=tuple(
            (one, replica.floor_s(one, replica.promised[one].percentile))
            for one in Binding
            if one in fleet.capacity.infeasible
        ),
        missed=_missed(fleet, arrival_rps, replicas),
        sequences=math.inf
        if occupancy is None
        else occupancy.sequences(MEMORY_PERCENTILE, replica.pooled(replicas)),
        memory_share=fleet.memory_share(arrival_rps, replicas),
        engine_share=per_replica_rps / fleet.capacity.full_rps,
        first_token_s=expected_s(Binding.TIME_TO_FIRST_TOKEN),
        output_token_s=expected_s(Binding.TIME_PER_OUTPUT_TOKEN),
        gpu_hours_per_day=service.gpus * replicas * HOURS_PER_DAY,
        price_per_million_tokens=_price_per_million(service, arrival_rps, replicas),
    )


def _replicas(service: GeneratingService, fleet: GeneratingFleet, arrival_rps: float) -> int:
    """Return the replicas that all bounds need; ImpossiblePlan where memory holds no request."""
    by_bounds = fleet.replicas_for(arrival_rps, fleet.target_s, 1.0)
    tokens = service.shape.prompt_tokens + service.shape.output_tokens
    if by_bounds is None or (service.limits.kv_tokens or math.inf) < tokens:
        raise ImpossiblePlan(
            "the memory must hold a request with its neighbours, also a long one; "
            f"got {service.limits.kv_tokens:.0f} KV tokens for contexts of "
            f"{fleet.capacity.replica.work.context_tokens:.0f} tokens on average. "
            "Use more GPUs per replica or a quantized cache, or bound the lengths."
        )
    usable_rps = service.ceiling * fleet.capacity.full_rps
    return max(1, by_bounds, rounded_up(arrival_rps / usable_rps))


def _price_per_million(
    service: GeneratingService, arrival_rps: float, replicas: int
) -> float | None:
    """Return the price of a million generated tokens; None without a price of GPUs."""
    if service.price_per_hour <= 0.0:
        return None
    price_per_hour = service.gpus * replicas * service.price_per_hour
    tokens_per_hour = arrival_rps * service.shape.output_tokens * SECONDS_PER_HOUR
    return price_per_hour / tokens_per_hour * MILLION


def _missed(
    fleet: GeneratingFleet, arrival_rps: float, replicas: int
) -> tuple[tuple[Binding, float, int], ...]:
    """Return the promises that this many replicas are expected to break, and how many would not.

    The decision adds none for what is late by its own length, and learns the rest from misses; a
    plan has none to learn from. Worked: Llama 70B, 5/s of 8000 tokens, p95 within 2.3 s, of which a
    prompt takes 2.17 s alone: 9 replicas, and 6 % of the requests late in a simulation.
    """
    replica, found = fleet.capacity.replica, []

    def kept(binding: Binding, number: int) -> bool:
        return replica.use(binding, arrival_rps / number, number) <= 1.0 + ROUNDING

    for binding, target in replica.promised.items():
        if binding in fleet.capacity.infeasible or kept(binding, replicas):
            continue
        low, high = replicas, 2 * replicas
        while not kept(binding, high) and arrival_rps / high > IDLE_RPS:
            low, high = high, 2 * high
        high = smallest(low, high, partial(kept, binding))
        per_replica_rps = arrival_rps / replicas
        expected_s = replica.percentile_s(binding, target.percentile, per_replica_rps, replicas)
        found.append((binding, expected_s, high))
    return tuple(found)


def iteration_tokens(service: GeneratingService) -> int:
    """Return the chunk size: tokens of an iteration, or the usual number."""
    return service.limits.iteration_tokens or DEFAULT_ITERATION_TOKENS
