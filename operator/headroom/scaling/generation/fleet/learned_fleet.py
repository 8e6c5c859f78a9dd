"""The serving model of a service that generates, from the values learned of its replicas."""

from __future__ import annotations

import math
from functools import lru_cache

from headroom.scaling.frozen import replace
from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.generation.learning.model_inputs import Inputs
from headroom.scaling.generation.promises.classes import SERVICE
from headroom.scaling.generation.replica_model.capacity import Capacity
from headroom.scaling.generation.replica_model.replica import GeneratingReplica
from headroom.scaling.generation.replica_model.work import work_of
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import TokenTargets


@lru_cache(maxsize=1024)
def fleet_of(
    inputs: Inputs,
    targets: TokenTargets,
    routing: Routing,
    target_s: float,
    ready: int = 0,
    of_class: str = SERVICE,
) -> GeneratingFleet:
    """Return the serving model; the same inputs give the same object, with its computed values.

    A replica that is added begins with an empty prefix cache, so with one more than are ready the
    share of cached tokens is taken as lower by one part in this many.
    """
    capacity, shape = _capacity(inputs, targets, routing), inputs.shape
    cached = shape.prompt_tokens - shape.computed_tokens
    if ready < 1 or cached <= LITTLE_CACHED * shape.prompt_tokens:
        return GeneratingFleet(capacity=capacity, target_s=target_s, of_class=of_class)
    left = cached * ready / (ready + 1)
    emptier = replace(shape, computed_tokens=shape.prompt_tokens - left)
    cold = _capacity(replace(inputs, shape=emptier), targets, routing)
    return GeneratingFleet(
        capacity=capacity, target_s=target_s, ready=ready, cold=cold, of_class=of_class
    )


LITTLE_CACHED = 0.05


def _capacity(inputs: Inputs, targets: TokenTargets, routing: Routing) -> Capacity:
    shape = inputs.shape
    output = max(1.0, shape.output_tokens)
    variation = max(0.0, shape.output_tokens_squared / (output * output) - 1.0)
    replica = GeneratingReplica(
        work=work_of(inputs.cost, shape, inputs.shared),
        limits=inputs.limits,
        targets=targets,
        factors=inputs.factors,
        routing=routing,
        output_cv=math.sqrt(variation),
    )
    return Capacity(replica=replica)
