"""Plans a service that generates: from token lengths, a rate and a cost to replicas and money.

The model is that of the decision (`scaling/generation`), so a plan and a running service agree
where the cost is the same. Prefill and decode pools are two engines, one without sequences and one
without prompts; their ratio is a result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

from headroom.planner.ceiling import rounded_up
from headroom.planner.errors import ImpossiblePlan, positive
from headroom.planner.generating_service import GeneratingService, check_service
from headroom.scaling.bisection import smallest
from headroom.scaling.generation.fleet import GeneratingFleet
from headroom.scaling.generation.occupancy import occupancy_of
from headroom.scaling.generation.replica import IDLE_RPS, MEMORY_PERCENTILE, GeneratingReplica
from headroom.scaling.generation.work import DEFAULT_ITERATION_TOKENS
from headroom.scaling.values.tokens import Binding, TokenTargets

SECONDS_PER_HOUR = 3600.0
HOURS_PER_DAY = 24.0
MILLION = 1e6
ROUNDING = 0.01
"""Tolerance of a promise: capacities are found to within 0.05 %, and percentiles are steep
there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPlan:
    """Replicas for a rate, what bounds them, and what they cost."""

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
    """That decode at once at one replica, at `MEMORY_PERCENTILE`."""
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
    by_bounds = fleet.replicas_for(arrival_rps, fleet.target_s, 1.0)
    tokens = service.shape.prompt_tokens + service.shape.output_tokens
    if by_bounds is None or (service.limits.kv_tokens or math.inf) < tokens:
        raise ImpossiblePlan(
            "the memory must hold a request with its neighbours, also a long one; "
            f"got {service.limits.kv_tokens:.0f} KV tokens for contexts of "
            f"{fleet.capacity.replica.work.context_tokens:.0f} tokens on average. "
            "Use more GPUs per replica or a quantized cache, or bound the lengths."
        )
    replicas = max(1, by_bounds, rounded_up(arrival_rps / usable_rps))
    bounds = {**fleet.capacity.by_bound(replicas), Binding.UTILIZATION: usable_rps}
    binding = min(bounds, key=lambda one: bounds[one])
    per_replica_rps = arrival_rps / replicas
    replica = fleet.capacity.replica
    occupancy = occupancy_of(replica.work, per_replica_rps)
    hours = service.gpus * replicas * HOURS_PER_DAY
    tokens_per_day = arrival_rps * service.shape.output_tokens * HOURS_PER_DAY * SECONDS_PER_HOUR
    price = None
    if service.price_per_hour > 0.0:
        price = hours * service.price_per_hour / tokens_per_day * MILLION
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
        first_token_s=_expected(
            service, Binding.TIME_TO_FIRST_TOKEN, replica, per_replica_rps, replicas
        ),
        output_token_s=_expected(
            service, Binding.TIME_PER_OUTPUT_TOKEN, replica, per_replica_rps, replicas
        ),
        gpu_hours_per_day=hours,
        price_per_million_tokens=price,
    )


def _expected(
    service: GeneratingService,
    binding: Binding,
    replica: GeneratingReplica,
    arrival_rps: float,
    replicas: int,
) -> float:
    target = replica.promised.get(binding)
    percentile = service.percentile if target is None else target.percentile
    return replica.percentile_s(binding, percentile, arrival_rps, replicas)


def _missed(
    fleet: GeneratingFleet, arrival_rps: float, replicas: int
) -> tuple[tuple[Binding, float, int], ...]:
    """Return the promises that so many replicas are expected to break, and how many would not.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPlan:
    """Prefill and decode in pools of their own."""

    prefill: int
    decode: int
    prefill_rps: float
    """Rate of each prefill replica."""
    decode_rps: float

    @property
    def replicas(self) -> int:
        """Replicas of both pools."""
        return self.prefill + self.decode


TRANSFER_TOKENS_PER_S = 200_000.0
"""Keys and values between pools: 131 kB per token over 200 Gbit/s is 190 000 tokens per second."""


def plan_split(service: GeneratingService, arrival_rps: float) -> SplitPlan | None:
    """Return the replicas of both pools; None where a promise cannot be kept by them.

    Prefill computes prompts alone, so no sequence makes an iteration longer; decode has no prompts,
    so nothing interrupts it. Each keeps the promise that it decides; the transfer is a part of the
    time to first token.
    """
    shape, targets = service.shape, service.targets
    moved_s = shape.prompt_tokens / TRANSFER_TOKENS_PER_S
    first, token = targets.first_token, targets.output_token
    if first is not None:
        if first.seconds <= moved_s:
            return None
        first = replace(first, seconds=first.seconds - moved_s)
    alone = replace(
        shape,
        output_tokens=1.0,
        output_tokens_squared=1.0,
        prompt_output_product=shape.prompt_tokens,
    )
    no_prompts = replace(shape, computed_tokens=0.0)
    pools = []
    for part, promises in (
        (alone, TokenTargets(first_token=first)),
        (no_prompts, TokenTargets(output_token=token)),
    ):
        fleet = replace(service, shape=part, targets=promises).fleet()
        number = fleet.replicas_for(arrival_rps, fleet.target_s, 1.0)
        if number is None or fleet.capacity.infeasible:
            return None
        usable_rps = service.ceiling * fleet.capacity.full_rps
        number = max(1, number, rounded_up(arrival_rps / usable_rps))
        pools.append((number, min(usable_rps, fleet.capacity_rps(fleet.target_s, number))))
    (prefill, prefill_rps), (decode, decode_rps) = pools
    return SplitPlan(prefill=prefill, decode=decode, prefill_rps=prefill_rps, decode_rps=decode_rps)


def iteration_tokens(service: GeneratingService) -> int:
    """Return the chunk size: tokens of an iteration, or the usual number."""
    return service.limits.iteration_tokens or DEFAULT_ITERATION_TOKENS
