"""`headroom plan generation`: from token lengths and promises to the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml
from rich.console import RenderableType
from rich.text import Text

from headroom.cli.commands.plan.arguments import ratio, routing_of, seconds
from headroom.cli.commands.plan.generation_options import (
    PromiseOptions,
    ReplicaOptions,
    RequestOptions,
)
from headroom.cli.commands.plan.generation_report import lines_of, report_of
from headroom.cli.commands.plan.measured_engine import measured_engine
from headroom.cli.commands.plan.replica_cost import (
    USUAL_SEQUENCES,
    ReplicaCost,
    check_given_once,
    replica_cost,
)
from headroom.cli.messages import say
from headroom.planner.errors import ImpossiblePlan, positive, require
from headroom.planner.generation.generating_service import GeneratingService, check_service
from headroom.planner.generation.pool_manifests import pool_manifests
from headroom.planner.generation.promised_floors import check_floors
from headroom.planner.generation.serving_settings import recommend
from headroom.planner.generation.token_plan import plan_generation
from headroom.scaling.values.tokens import (
    EngineLimits,
    IterationCost,
    RequestShape,
    Target,
    TokenTargets,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOptions:
    """The options as given."""

    rate_rps: float
    requests: RequestOptions
    replica: ReplicaOptions
    promises: PromiseOptions
    routing: str
    gpu_price: float


UNMEASURED = ReplicaCost(
    cost=IterationCost(fixed_s=0.01, prompt_token_s=1e-5, sequence_s=1e-5),
    limits=EngineLimits(),
    gpus=1,
    source="nothing",
)
"""With which the other options are checked before a measurement."""


def planned_generation(options: GenerationOptions) -> tuple[dict[str, Any], RenderableType]:
    """Return the plan as JSON and as text."""
    check_given_once(options.replica)
    engine = None
    if options.replica.measure is not None:
        positive("the arrival rate", options.rate_rps, "Give requests per second")
        check_service(service_of(options, UNMEASURED))  # a measurement takes a minute
        say(f"watching {options.replica.measure} for {options.replica.watch}")
        engine = measured_engine(
            options.replica.measure,
            profile=options.replica.profile,
            model=options.replica.model,
            seconds=seconds("--watch", options.replica.watch),
            sequences=options.replica.max_sequences or USUAL_SEQUENCES,
        )
    replica = replica_cost(options.replica, engine)
    service = service_of(options, replica)
    plan = plan_generation(service, options.rate_rps)
    try:
        check_floors(service, plan, options.rate_rps)
    except ImpossiblePlan as error:
        if engine is None:
            raise
        measured = "; ".join(replica.lines())  # it took a minute: an error must not lose it
        raise ImpossiblePlan(f"{error} Measured: {measured}.") from None
    advice = recommend(service, options.rate_rps)
    replica = replica.planned(options.rate_rps / plan.replicas)
    report = report_of(service, plan, advice, options.rate_rps) | {"cost": replica.report()}
    return report, Text("\n".join(lines_of(service, replica, plan, advice)))


def planned_pools(
    options: GenerationOptions, name: str
) -> tuple[list[dict[str, Any]], RenderableType]:
    """Return the resources of both pools as JSON and as YAML, to apply as they are."""
    check_given_once(options.replica)
    require(options.replica.measure is None, "--pools must go without --measure", "both", ONE_COST)
    positive("the arrival rate", options.rate_rps, "Give requests per second")
    replica = replica_cost(options.replica, None)
    found = pool_manifests(service_of(options, replica), options.rate_rps, name)
    return found, Text(yaml.safe_dump_all(found, sort_keys=False).rstrip())


ONE_COST = "Measured replicas do both: give the cost with --on or --iteration-ms"


def service_of(options: GenerationOptions, replica: ReplicaCost) -> GeneratingService:
    """Return the service; ImpossiblePlan says which option is missing or wrong."""
    promises = options.promises
    percentile = ratio(promises.percentile)
    return GeneratingService(
        shape=_shape(options.requests),
        cost=replica.cost,
        limits=replica.limits,
        targets=TokenTargets(
            first_token=_target("--first-token", promises.first_token, percentile),
            output_token=_target("--output-token", promises.output_token, percentile),
            latency=_target("--whole-answer", promises.whole_answer, percentile),
        ),
        ceiling=promises.max_utilization,
        gpus=replica.gpus,
        price_per_hour=options.gpu_price,
        percentile=percentile,
        routing=routing_of(options.routing),
    )


def _shape(given: RequestOptions) -> RequestShape:
    cached, accepted = given.cached, given.accepted
    require(0 <= cached < 1, "--cached must be from 0 to below 1", f"{cached:g}", "Try 0.3")
    require(accepted >= 1, "--accepted must be at least 1", f"{accepted:g}", "Try 1")
    for name, value in (("--prompt-cv", given.prompt_cv), ("--answer-cv", given.answer_cv)):
        require(0 <= value <= 20, f"{name} must be from 0 to 20", f"{value:g}", "1 is exponential")
    return RequestShape(
        prompt_tokens=given.prompt,
        computed_tokens=given.prompt * (1.0 - cached),
        output_tokens=given.answer,
        prompt_tokens_squared=given.prompt**2 * (1.0 + given.prompt_cv**2),
        output_tokens_squared=given.answer**2 * (1.0 + given.answer_cv**2),
        prompt_output_product=given.prompt * given.answer,
        accepted_per_step=accepted,
    )


def _target(name: str, text: str | None, percentile: float) -> Target | None:
    return None if text is None else Target(percentile=percentile, seconds=seconds(name, text))
