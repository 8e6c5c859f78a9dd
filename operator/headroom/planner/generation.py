"""Plans a service that generates: from token lengths, a rate and a cost to replicas and money.

The model is that of the decision (`scaling/generation`), so a plan and a running service agree
where the cost is the same. Prefill and decode pools are two engines, one without sequences and one
without prompts; their ratio is a result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from headroom.planner.ceiling import rounded_up
from headroom.planner.errors import ImpossiblePlan, positive, require
from headroom.scaling.generation.capacity import Capacity
from headroom.scaling.generation.fleet import GeneratingFleet
from headroom.scaling.generation.occupancy import occupancy_of
from headroom.scaling.generation.replica import MEMORY_PERCENTILE, GeneratingReplica
from headroom.scaling.generation.work import DEFAULT_ITERATION_TOKENS, work_of
from headroom.scaling.token_values import (
    Binding,
    EngineLimits,
    IterationCost,
    RequestShape,
    Target,
    TokenTargets,
)
from headroom.scaling.values import Routing

SECONDS_PER_HOUR = 3600.0
HOURS_PER_DAY = 24.0
MILLION = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratingService:
    """What is planned: requests, one replica, promises."""

    shape: RequestShape
    cost: IterationCost
    limits: EngineLimits
    targets: TokenTargets
    ceiling: float = 0.8
    """Of the engine's time."""
    gpus: int = 1
    """Of one replica."""
    price_per_hour: float = 0.0
    """Of one GPU; 0: not given."""
    routing: Routing = Routing.LEAST_IN_FLIGHT

    def fleet(self) -> GeneratingFleet:
        """Return the model of its replicas."""
        output = max(1.0, self.shape.output_tokens)
        variation = max(0.0, self.shape.output_tokens_squared / (output * output) - 1.0)
        replica = GeneratingReplica(
            work=work_of(self.cost, self.shape),
            limits=self.limits,
            targets=self.targets,
            routing=self.routing,
            output_cv=math.sqrt(variation),
        )
        return GeneratingFleet(capacity=Capacity(replica=replica), target_s=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPlan:
    """Replicas for a rate, what bounds them, and what they cost."""

    replicas: int
    binding: Binding
    capacity_rps: float
    """Of each replica."""
    bounds_rps: tuple[tuple[Binding, float], ...]
    """Within each bound alone, the lowest first."""
    infeasible: tuple[tuple[Binding, float], ...]
    """Promises that an idle replica breaks, with the lowest time that it keeps."""
    sequences_p95: float
    """That decode at once at one replica."""
    memory_share: float | None
    engine_share: float
    first_token_s: float
    """The promised percentile, or the 95th, at the planned load."""
    output_token_s: float
    gpu_hours_per_day: float
    price_per_million_tokens: float | None
    """Of generated tokens, at this rate around the clock; None without a price."""


def plan_generation(service: GeneratingService, arrival_rps: float) -> GenerationPlan:
    """Return the fewest replicas that keep every promise that one replica can keep.

    Raises ImpossiblePlan for numbers that no service can have.
    """
    positive("the arrival rate", arrival_rps, "Give requests per second")
    check_shape(service.shape)
    require(
        0 < service.ceiling < 1,
        "the ceiling must be above 0 and below 1",
        service.ceiling,
        "Try 0.8",
    )
    fleet = service.fleet()
    usable_rps = service.ceiling * fleet.capacity.full_rps
    by_bounds = fleet.replicas_for(arrival_rps, fleet.target_s, 1.0)
    if by_bounds is None:
        raise ImpossiblePlan(
            "the memory must hold a request with its neighbours; "
            f"got {service.limits.kv_tokens} KV tokens for contexts of "
            f"{fleet.capacity.replica.work.context_tokens:.0f}. "
            "Use more GPUs per replica, or a quantized cache."
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
        sequences_p95=math.inf
        if occupancy is None
        else occupancy.sequences(MEMORY_PERCENTILE, replica.pooled(replicas)),
        memory_share=fleet.memory_share(arrival_rps, replicas),
        engine_share=per_replica_rps / fleet.capacity.full_rps,
        first_token_s=_expected(
            replica,
            Binding.TIME_TO_FIRST_TOKEN,
            service.targets.first_token,
            per_replica_rps,
            replicas,
        ),
        output_token_s=_expected(
            replica,
            Binding.TIME_PER_OUTPUT_TOKEN,
            service.targets.output_token,
            per_replica_rps,
            replicas,
        ),
        gpu_hours_per_day=hours,
        price_per_million_tokens=price,
    )


def _expected(
    replica: GeneratingReplica,
    binding: Binding,
    target: Target | None,
    arrival_rps: float,
    replicas: int,
) -> float:
    percentile = MEMORY_PERCENTILE if target is None else target.percentile
    return replica.percentile_s(binding, percentile, arrival_rps, replicas)


def check_shape(shape: RequestShape) -> None:
    """Raise ImpossiblePlan unless the lengths are those of requests."""
    positive("the prompt length", shape.prompt_tokens, "Give its mean in tokens")
    require(
        shape.output_tokens >= 1,
        "the answer must have at least 1 token",
        shape.output_tokens,
        "Give it",
    )
    require(
        0 <= shape.computed_tokens <= shape.prompt_tokens,
        "the computed part of a prompt must be at most its length",
        shape.computed_tokens,
        "Give the share found in the prefix cache from 0 to below 1",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPlan:
    """Prefill and decode in pools of their own."""

    prefill: int
    decode: int
    prefill_rps: float
    """Of each prefill replica."""
    decode_rps: float

    @property
    def replicas(self) -> int:
        """Of both pools."""
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
