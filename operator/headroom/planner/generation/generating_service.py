"""The generating service that is planned: requests, one replica, promises."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.planner.ceiling import check_ceiling
from headroom.planner.errors import positive, require
from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.generation.replica_model.capacity import Capacity
from headroom.scaling.generation.replica_model.replica import GeneratingReplica
from headroom.scaling.generation.replica_model.work import work_of
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import EngineLimits, IterationCost, RequestShape, TokenTargets


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratingService:
    """Planned service: requests, one replica, promises."""

    shape: RequestShape
    cost: IterationCost
    limits: EngineLimits
    targets: TokenTargets
    ceiling: float = 0.8
    """Highest share of the engine's time."""
    gpus: int = 1
    """GPUs of one replica."""
    price_per_hour: float = 0.0
    """Price of one GPU; 0: not given."""
    routing: Routing = Routing.RANDOM
    """Routing of a Service; one that sees requests in flight keeps their number level."""
    percentile: float = 0.95
    """Percentile of the expected times that have no target."""

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


def check_service(service: GeneratingService) -> None:
    """Raise ImpossiblePlan for numbers that no service can have."""
    check_shape(service.shape)
    check_ceiling(service.ceiling)
    cost, limits, targets = service.cost, service.limits, service.targets
    positive(
        "the time of an iteration with a prompt token", cost.iteration_s(1, 1, 1), "Measure it"
    )
    positive("the GPUs of a replica", service.gpus, "Give 1 or more")
    require(
        0 <= service.price_per_hour < math.inf,
        "the price of a GPU-hour must be at least 0",
        f"{service.price_per_hour:g}",
        "Leave it out if it is not known",
    )
    for name, limit in (
        ("the KV tokens", limits.kv_tokens),
        ("the sequences at once", limits.sequences),
        ("the tokens of an iteration", limits.iteration_tokens),
    ):
        if limit is not None:
            positive(name, limit, "Leave it out if it is not known")
    for name, target in (
        ("the time to first token", targets.first_token),
        ("the time per output token", targets.output_token),
        ("the time of the whole answer", targets.latency),
    ):
        if target is not None:
            positive(f"the target of {name}", target.seconds, "Give a time such as 500ms")
    require(
        targets.output_token is None or service.shape.output_tokens > 1,
        "answers must have more than 1 token where the time per output token has a target",
        f"{service.shape.output_tokens:g}",
        "Leave out that target: it is the time between tokens",
    )


def check_shape(shape: RequestShape) -> None:
    """Raise ImpossiblePlan unless the lengths are those of requests."""
    positive("the prompt length", shape.prompt_tokens, "Give its mean in tokens")
    require(
        1 <= shape.output_tokens < math.inf,
        "the answer must have at least 1 token",
        f"{shape.output_tokens:g}",
        "Give its mean in tokens",
    )
    require(
        0 <= shape.computed_tokens <= shape.prompt_tokens,
        "the computed part of a prompt must be at most its length",
        shape.computed_tokens,
        "Give the share found in the prefix cache from 0 to below 1",
    )
