"""`headroom plan generation`: from token lengths and promises to the printed plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from headroom.cli.commands.plan.arguments import ratio, routing_of, seconds
from headroom.cli.commands.plan.generation_options import (
    PromiseOptions,
    ReplicaOptions,
    RequestOptions,
)
from headroom.cli.commands.plan.measured_engine import measured_engine
from headroom.cli.commands.plan.output import counted, finite, ms, rate
from headroom.cli.commands.plan.replica_cost import (
    USUAL_SEQUENCES,
    ReplicaCost,
    check_given_once,
    replica_cost,
)
from headroom.planner.engine_settings import TAIL
from headroom.planner.errors import positive, require
from headroom.planner.generating_service import GeneratingService, check_service
from headroom.planner.generation import GenerationPlan, plan_generation
from headroom.planner.serving_settings import Advice, recommend
from headroom.planner.split_pools import plan_split
from headroom.scaling.values.tokens import (
    EngineLimits,
    IterationCost,
    RequestShape,
    Target,
    TokenTargets,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
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


def planned_generation(asked: Asked) -> tuple[dict[str, Any], RenderableType]:
    """Return the plan as JSON and as text."""
    check_given_once(asked.replica)
    engine = None
    if asked.replica.measure is not None:
        positive("the arrival rate", asked.rate_rps, "Give requests per second")
        check_service(service_of(asked, UNMEASURED))  # a measurement takes a minute
        engine = measured_engine(
            asked.replica.measure,
            profile=asked.replica.profile,
            model=asked.replica.model,
            seconds=seconds("--watch", asked.replica.watch),
            sequences=asked.replica.max_sequences or USUAL_SEQUENCES,
        )
    replica = replica_cost(asked.replica, engine)
    service = service_of(asked, replica)
    plan = plan_generation(service, asked.rate_rps)
    advice = recommend(service, asked.rate_rps)
    replica = replica.planned(asked.rate_rps / plan.replicas)
    report = _report(service, plan, advice, asked.rate_rps) | {"cost": replica.report()}
    return report, Text("\n".join(_lines(service, replica, plan, advice)))


def service_of(asked: Asked, replica: ReplicaCost) -> GeneratingService:
    """Return the service; ImpossiblePlan says which option is missing or wrong."""
    promises = asked.promises
    percentile = ratio(promises.percentile)
    return GeneratingService(
        shape=_shape(asked.requests),
        cost=replica.cost,
        limits=replica.limits,
        targets=TokenTargets(
            first_token=_target("--first-token", promises.first_token, percentile),
            output_token=_target("--output-token", promises.output_token, percentile),
            latency=_target("--whole-answer", promises.whole_answer, percentile),
        ),
        ceiling=promises.max_utilization,
        gpus=replica.gpus,
        price_per_hour=asked.gpu_price,
        percentile=percentile,
        routing=routing_of(asked.routing),
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


def _report(
    service: GeneratingService,
    plan: GenerationPlan,
    advice: Advice,
    rate_rps: float,
) -> dict[str, Any]:
    split = plan_split(service, rate_rps)
    return {
        "replicas": plan.replicas,
        "gpus": plan.replicas * service.gpus,
        "binds": plan.binding.value,
        "capacityPerSecond": plan.capacity_rps,
        "bounds": {name.value: finite(rate) for name, rate in plan.bounds_rps},
        "infeasible": {name.value: seconds_ for name, seconds_ in plan.infeasible},
        "missed": {
            name.value: {"expectedSeconds": finite(expected_s), "replicasThatKeepIt": replicas}
            for name, expected_s, replicas in plan.missed
        },
        "expected": {
            "percentile": 100 * service.percentile,
            "firstTokenSeconds": finite(plan.first_token_s),
            "outputTokenSeconds": finite(plan.output_token_s),
            "sequences": finite(plan.sequences),
            "memoryShare": plan.memory_share,
            "engineShare": plan.engine_share,
        },
        "gpuHoursPerDay": plan.gpu_hours_per_day,
        "pricePerMillionTokens": plan.price_per_million_tokens,
        "split": None
        if split is None
        else {"prefill": split.prefill, "decode": split.decode, "replicas": split.replicas},
        "settings": [
            {"name": one.name, "value": one.value, "reason": one.reason, "effect": one.effect}
            for one in advice.settings
        ],
        "withSettings": {"replicas": advice.plan.replicas},
    }


def _lines(
    service: GeneratingService, replica: ReplicaCost, plan: GenerationPlan, advice: Advice
) -> Iterator[str]:
    """Yield the plan line by line: no table, which would cut the names of settings."""
    replicas = counted(plan.replicas, "replica")
    yield (
        f"{replicas}, {counted(plan.replicas * service.gpus, 'GPU')}: {plan.binding.value} binds "
        f"at {rate(plan.capacity_rps)} per replica"
    )
    price = plan.price_per_million_tokens
    yield f"{plan.gpu_hours_per_day:.0f} GPU-hours a day" + (
        f", {price:.3g} per million generated tokens" if price is not None else ""
    )
    share = plan.memory_share
    yield (
        f"expected: first token {ms(plan.first_token_s)}, per token {ms(plan.output_token_s)} "
        f"(p{100 * service.percentile:g}); {plan.sequences:.0f} sequences at once"
        + (f", {100 * share:.0f} % of the KV tokens" if share is not None else "")
        + f" (p{TAIL})"
    )
    for name, floor_s in plan.infeasible:
        yield (
            f"{name.value} cannot be kept: an idle replica needs {ms(floor_s)}. Raise the target, "
            "or use a faster model or accelerator"
        )
    for name, expected_s, enough in plan.missed:
        yield (
            f"{name.value} is expected to be missed: {ms(expected_s)}, mostly the prompt's own "
            f"time; {counted(enough, 'replica')} would keep it"
        )
    yield from replica.lines()
    yield ""
    yield "bound               requests/s per replica"
    for name, bound_rps in plan.bounds_rps:
        yield f"{name.value:<18}  {bound_rps:>22.4g}"
    yield ""
    yield "settings, each planned with those above it:"
    for one in advice.settings:
        yield f"- {one.name}: {one.value}; {one.effect}"
        yield f"  {one.reason}"
    yield f"with all of them: {counted(advice.plan.replicas, 'replica')}"
