"""`headroom plan generation`: from token lengths and promises to the printed plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headroom.cli.commands.plan.arguments import missing, ratio, seconds
from headroom.cli.commands.plan.measured_engine import MeasuredEngine, measured_engine
from headroom.cli.commands.plan.output import finite, ms
from headroom.planner.accelerators import PUBLISHED_FACTOR, accelerator
from headroom.planner.errors import require
from headroom.planner.generation import (
    GeneratingService,
    GenerationPlan,
    plan_generation,
    plan_split,
)
from headroom.planner.serving_settings import Setting, recommend
from headroom.scaling.generation.learned import scaled
from headroom.scaling.token_values import (
    EngineLimits,
    IterationCost,
    RequestShape,
    Target,
    TokenTargets,
)

MS = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options as given."""

    rate_rps: float
    prompt: float
    output: float
    prompt_cv: float
    output_cv: float
    cached: float
    accepted: float
    on: str | None
    measure: str | None
    """URL of a replica that shows its cost."""
    profile: str
    model: str | None
    watch: str
    iteration_ms: float | None
    prompt_token_ms: float | None
    sequence_ms: float
    context_token_ms: float
    kv_tokens: float | None
    max_sequences: int | None
    iteration_tokens: int | None
    gpus: int | None
    gpu_price: float
    first_token: str | None
    output_token: str | None
    whole_answer: str | None
    percentile: float
    max_utilization: float


def planned_generation(asked: Asked) -> tuple[dict[str, Any], RenderableType]:
    """Return the plan as JSON and as text."""
    engine = _measured(asked)
    service = service_of(asked, engine)
    plan = plan_generation(service, asked.rate_rps)
    settings = recommend(service, asked.rate_rps)
    report, view = (
        _report(service, plan, settings, asked.rate_rps),
        _view(service, plan, settings),
    )
    if engine is None:
        return report, view
    report["measured"] = {
        "fixedSeconds": engine.cost.fixed_s,
        "promptTokenSeconds": engine.cost.prompt_token_s,
        "sequenceSeconds": engine.cost.sequence_s,
        "contextTokenSeconds": engine.cost.context_token_s,
        "source": engine.source,
        "unknown": list(engine.unknown),
    }
    return report, Group(*map(Text, _measured_lines(engine)), view)


def _measured(asked: Asked) -> MeasuredEngine | None:
    if asked.measure is None:
        return None
    require(asked.on is None, "--measure takes the place of --on", f"{asked.on}", "Give one")
    return measured_engine(
        asked.measure,
        profile=asked.profile,
        model=asked.model,
        seconds=seconds("--watch", asked.watch),
    )


def _measured_lines(engine: MeasuredEngine) -> Iterator[str]:
    cost = engine.cost
    yield (
        f"an iteration takes {MS * cost.fixed_s:.3g} ms, {MS * cost.prompt_token_s:.3g} ms per "
        f"prompt token, {MS * cost.sequence_s:.3g} ms per sequence and "
        f"{MS * cost.context_token_s:.3g} ms per token of context: from {engine.source}"
    )
    yield from (f"not known: {one}" for one in engine.unknown)


def service_of(asked: Asked, engine: MeasuredEngine | None = None) -> GeneratingService:
    """Return the service; ImpossiblePlan says which option is missing or wrong."""
    require(
        0 <= asked.cached < 1, "--cached must be from 0 to below 1", f"{asked.cached:g}", "Try 0.3"
    )
    require(asked.accepted >= 1, "--accepted must be at least 1", f"{asked.accepted:g}", "Try 1")
    for name, value in (("--prompt-cv", asked.prompt_cv), ("--answer-cv", asked.output_cv)):
        require(0 <= value <= 20, f"{name} must be from 0 to 20", f"{value:g}", "1 is exponential")
    cost, limits, gpus = _replica(asked, engine)
    percentile = ratio(asked.percentile)
    shape = RequestShape(
        prompt_tokens=asked.prompt,
        computed_tokens=asked.prompt * (1.0 - asked.cached),
        output_tokens=asked.output,
        prompt_tokens_squared=asked.prompt**2 * (1.0 + asked.prompt_cv**2),
        output_tokens_squared=asked.output**2 * (1.0 + asked.output_cv**2),
        prompt_output_product=asked.prompt * asked.output,
        accepted_per_step=asked.accepted,
    )
    return GeneratingService(
        shape=shape,
        cost=cost,
        limits=limits,
        targets=TokenTargets(
            first_token=_target("--first-token", asked.first_token, percentile),
            output_token=_target("--output-token", asked.output_token, percentile),
            latency=_target("--whole-answer", asked.whole_answer, percentile),
        ),
        ceiling=asked.max_utilization,
        gpus=gpus,
        price_per_hour=asked.gpu_price,
    )


def _target(name: str, text: str | None, percentile: float) -> Target | None:
    return None if text is None else Target(percentile=percentile, seconds=seconds(name, text))


def _replica(
    asked: Asked, engine: MeasuredEngine | None
) -> tuple[IterationCost, EngineLimits, int]:
    """Return what one replica costs and holds: as measured, or of the table, or as given."""
    if engine is not None:
        cost, gpus = engine.cost, asked.gpus or 1
        kv_tokens = asked.kv_tokens or engine.limits.kv_tokens or 0.0
    elif asked.on is not None:
        row = accelerator(asked.on)
        cost = scaled(row.cost, PUBLISHED_FACTOR)
        kv_tokens, gpus = asked.kv_tokens or row.kv_tokens, asked.gpus or row.gpus
    else:
        if asked.iteration_ms is None or asked.prompt_token_ms is None:
            missing("the cost of an iteration", "--on qwen3-32b/2xh100")
        given = {
            "--iteration-ms": asked.iteration_ms,
            "--prompt-token-ms": asked.prompt_token_ms,
            "--sequence-ms": asked.sequence_ms,
            "--context-token-ms": asked.context_token_ms,
        }
        for name, value in given.items():
            require(0 <= value < 1e6, f"{name} must be from 0 to 1e6", f"{value:g}", "Measure it")
        cost = IterationCost(
            fixed_s=asked.iteration_ms / MS,
            prompt_token_s=asked.prompt_token_ms / MS,
            sequence_s=asked.sequence_ms / MS,
            context_token_s=asked.context_token_ms / MS,
        )
        kv_tokens, gpus = asked.kv_tokens or 0.0, asked.gpus or 1
    seen = EngineLimits() if engine is None else engine.limits
    limits = EngineLimits(
        kv_tokens=kv_tokens or None,
        sequences=seen.sequences or asked.max_sequences,
        iteration_tokens=seen.iteration_tokens or asked.iteration_tokens,
    )
    return cost, limits, gpus


def _report(
    service: GeneratingService,
    plan: GenerationPlan,
    settings: tuple[Setting, ...],
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
        "expected": {
            "firstTokenSeconds": finite(plan.first_token_s),
            "outputTokenSeconds": finite(plan.output_token_s),
            "sequences": finite(plan.sequences_p95),
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
            for one in settings
        ],
    }


def _view(
    service: GeneratingService, plan: GenerationPlan, settings: tuple[Setting, ...]
) -> RenderableType:
    unit = "replica" if plan.replicas == 1 else "replicas"
    gpus = plan.replicas * service.gpus
    carried = f"{plan.capacity_rps:.3g}/s"
    lines = [
        f"{plan.replicas} {unit}, {gpus} GPUs: {plan.binding.value} binds at {carried} per replica",
        f"{plan.gpu_hours_per_day:.0f} GPU-hours a day"
        + (
            f", {plan.price_per_million_tokens:.2f} per million generated tokens"
            if plan.price_per_million_tokens is not None
            else ""
        ),
        f"expected: first token {ms(plan.first_token_s)}, per token {ms(plan.output_token_s)}, "
        f"{plan.sequences_p95:.0f} sequences at once"
        + (f", {100 * plan.memory_share:.0f} % of the KV tokens" if plan.memory_share else ""),
    ]
    lines += [
        f"{name.value} cannot be kept: an idle replica needs {ms(floor_s)}"
        for name, floor_s in plan.infeasible
    ]
    bounds = Table(box=None, pad_edge=False)
    bounds.add_column("bound")
    bounds.add_column("requests/s per replica", justify="right")
    for name, rate in plan.bounds_rps:
        bounds.add_row(name.value, f"{rate:.3g}")
    advice = Table(box=None, pad_edge=False)
    for column in ("setting", "value", "reason", "effect"):
        advice.add_column(column)
    for one in settings:
        advice.add_row(one.name, one.value, one.reason, one.effect)
    return Group(*map(Text, lines), Text(""), bounds, Text(""), advice)
