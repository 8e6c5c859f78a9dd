"""The plan of `headroom plan generation` as JSON and as lines of text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headroom.cli.commands.plan.output import NO_REDUNDANCY, counted, finite, ms, rate
from headroom.cli.commands.plan.replica_cost import ReplicaCost
from headroom.planner.generation.engine_settings import TAIL
from headroom.planner.generation.generating_service import GeneratingService
from headroom.planner.generation.serving_settings import Advice
from headroom.planner.generation.split_pools import plan_split
from headroom.planner.generation.token_plan import GenerationPlan


def report_of(
    service: GeneratingService,
    plan: GenerationPlan,
    advice: Advice,
    rate_rps: float,
) -> dict[str, Any]:
    """Return the plan, its limits and the effects of settings, as JSON."""
    split = plan_split(service, rate_rps)
    return {
        "replicas": plan.replicas,
        "gpus": plan.replicas * service.gpus,
        "binds": plan.binding.value,
        "capacityPerSecond": plan.capacity_rps,
        "bounds": {name.value: finite(rate) for name, rate in plan.bounds_rps},
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


def lines_of(
    service: GeneratingService, replica: ReplicaCost, plan: GenerationPlan, advice: Advice
) -> Iterator[str]:
    """Yield the plan line by line: no table, which would cut the names of settings."""
    replicas = counted(plan.replicas, "replica")
    yield (
        f"{replicas}, {counted(plan.replicas * service.gpus, 'GPU')}: {plan.binding.value} binds "
        f"at {rate(plan.capacity_rps)} per replica"
    )
    if plan.replicas == 1:
        yield NO_REDUNDANCY
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
