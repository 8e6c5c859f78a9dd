"""The sums beside a plan: a promise under a rise, a queue, a fan-out, a budget, a KV cache."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

from typing import Annotated

import typer

from headroom.cli.commands.plan.options import (
    Ceiling,
    Fixed,
    Floor,
    Json,
    MaxBatch,
    Percentile,
    PerItem,
    ServiceTime,
    Slots,
    Variation,
)
from headroom.cli.commands.plan.output import exit_on_invalid_input, show


def promise(
    rate: Annotated[float, typer.Option(help="Requests per second before the rise.")],
    rises_to: Annotated[float, typer.Option(help="Requests per second after it.")],
    cold_start: Annotated[str, typer.Option(help="From asking for a replica to readiness.")],
    target: Annotated[str, typer.Option(help="Latency promised.")],
    lasts: Annotated[str, typer.Option(help="How long the rise lasts.")] = "20m",
    within: Annotated[str, typer.Option(help="Length of the whole time.")] = "90m",
    floor: Floor = 1,
    fixed: Fixed = None,
    per_item: PerItem = None,
    max_batch: MaxBatch = None,
    slots: Slots = 1,
    service_time: ServiceTime = None,
    cv: Variation = None,
    percentile: Percentile = 95.0,
    ceiling: Ceiling = 0.8,
    as_json: Json = False,
) -> None:
    """Say which promise is feasible when load rises and a cold start has to be waited for."""
    from headroom.cli.commands.plan.arguments import cost_of, ratio, seconds
    from headroom.cli.commands.plan.trace_plan import promised
    from headroom.planner.demand import Service

    with exit_on_invalid_input():
        service = Service(
            cost=cost_of(fixed, per_item, max_batch, slots, service_time, cv),
            target_s=seconds("--target", target),
            percentile=ratio(percentile),
            ceiling=ceiling,
        )
        found = promised(
            service,
            rate_rps=rate,
            risen_rps=rises_to,
            lasts_s=seconds("--lasts", lasts),
            within_s=seconds("--within", within),
            cold_start_s=seconds("--cold-start", cold_start),
            floor=floor,
        )
        show(found.report, [found.view], as_json)


def queue(
    rate: Annotated[float, typer.Option(help="Requests per second that a busy server carries.")],
    utilization: Annotated[
        list[float] | None, typer.Option(help="0 to 1; repeat for several.")
    ] = None,
    slots: Slots = 1,
    as_json: Json = False,
) -> None:
    """Mean latency and queue length by utilization: M/M/1, or M/M/c with --slots."""
    from headroom.cli.commands.plan.calculators import queue_sums

    with exit_on_invalid_input():
        show(*queue_sums(rate, slots, utilization or None), as_json)


def fan_out(
    percentile: Percentile = 99.0,
    calls: Annotated[
        list[int] | None, typer.Option(help="Parallel calls of a request; repeat for several.")
    ] = None,
    as_json: Json = False,
) -> None:
    """The percentile that each of n parallel calls must meet."""
    from headroom.cli.commands.plan.arguments import ratio
    from headroom.cli.commands.plan.calculators import fan_out_sums

    with exit_on_invalid_input():
        show(*fan_out_sums(ratio(percentile), calls or [1, 2, 5, 10, 20]), as_json)


def budget(
    stage: Annotated[list[str], typer.Option(help="name=time; repeat for each stage, in a row.")],
    target: Annotated[str, typer.Option(help="What the whole may take.")],
    percentile: Percentile = 95.0,
    speedup: Annotated[
        list[str] | None, typer.Option(help="name=factor: what that stage being faster gives.")
    ] = None,
    as_json: Json = False,
) -> None:
    """A latency budget over stages: the bottleneck, and Amdahl's bound on speeding one up."""
    from headroom.cli.commands.plan.arguments import number, pair, ratio, seconds
    from headroom.cli.commands.plan.calculators import budget_sums

    with exit_on_invalid_input():
        stages = [(name, seconds("--stage", text)) for name, text in map(pair, stage)]
        factors = [(name, number("--speedup", text)) for name, text in map(pair, speedup or [])]
        target_s = seconds("--target", target)
        show(*budget_sums(stages, target_s, ratio(percentile), factors), as_json)


def kv_cache(
    layers: Annotated[int, typer.Option(help="Transformer layers.")],
    width: Annotated[int, typer.Option(help="Hidden size.")],
    tokens: Annotated[int, typer.Option(help="Tokens of a sequence, prompt and answer.")] = 4096,
    value_bytes: Annotated[float, typer.Option("--bytes", help="Per value: 2 is fp16.")] = 2.0,
    heads: Annotated[int | None, typer.Option(help="Attention heads.")] = None,
    kv_heads: Annotated[int | None, typer.Option(help="Key-value heads, if fewer.")] = None,
    memory: Annotated[float | None, typer.Option(help="GiB of the accelerator.")] = None,
    weights: Annotated[float, typer.Option(help="GiB of the weights.")] = 0.0,
    as_json: Json = False,
) -> None:
    """The key-value cache of a transformer, and the sequences that fit beside the weights."""
    from headroom.cli.commands.plan.arguments import missing
    from headroom.cli.commands.plan.calculators import kv_cache_sums

    with exit_on_invalid_input():
        if (heads is None) != (kv_heads is None):
            missing("--heads" if heads is None else "--kv-heads", "32")
        shared = 1.0 if heads is None or kv_heads is None else kv_heads / max(1, heads)
        show(*kv_cache_sums(layers, width, tokens, value_bytes, shared, memory, weights), as_json)
