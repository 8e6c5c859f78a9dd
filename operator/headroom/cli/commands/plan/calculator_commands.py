"""The calculators of `headroom plan`: feasibility, queue, fan-out, budget and KV cache."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

from typing import Annotated

import typer

from headroom.cli.cluster_options import Output, OutputOption
from headroom.cli.commands.plan.options import (
    SCALING,
    CostOptions,
    MaxUtilization,
    MinReplicas,
    Percentile,
    RequiredTarget,
    Slots,
)
from headroom.cli.commands.plan.output import exit_on_invalid_input, show


def feasibility(
    rate: Annotated[float, typer.Option(help="Requests per second before the peak.")],
    peak_rate: Annotated[float, typer.Option(help="Requests per second at the peak.")],
    cold_start: Annotated[
        str,
        typer.Option(help="Time from requesting a replica to readiness.", rich_help_panel=SCALING),
    ],
    target: RequiredTarget,
    cost: CostOptions,
    peak_duration: Annotated[str, typer.Option(help="Duration of the peak.")] = "20m",
    horizon: Annotated[
        str, typer.Option(help="Time over which attainment is computed, including the peak.")
    ] = "90m",
    min_replicas: MinReplicas = 1,
    percentile: Percentile = 95.0,
    max_utilization: MaxUtilization = 0.8,
    output: OutputOption = Output.TEXT,
) -> None:
    """The attainment that a cold start and minReplicas allow when load rises."""
    from headroom.cli.commands.plan.arguments import cost_of, ratio, seconds
    from headroom.cli.commands.plan.trace_plan import planned_peak
    from headroom.planner.demand import Service

    with exit_on_invalid_input():
        service = Service(
            cost=cost_of(cost),
            target_s=seconds("--target", target),
            percentile=ratio(percentile),
            ceiling=max_utilization,
        )
        found = planned_peak(
            service,
            rate_rps=rate,
            peak_rps=peak_rate,
            peak_duration_s=seconds("--peak-duration", peak_duration),
            horizon_s=seconds("--horizon", horizon),
            cold_start_s=seconds("--cold-start", cold_start),
            min_replicas=min_replicas,
        )
        show(found.report, [found.view], output)


def queue(
    rate: Annotated[float, typer.Option(help="Throughput of a busy server, requests per second.")],
    utilization: Annotated[
        list[float] | None, typer.Option(help="From 0 to below 1; repeat it for several.")
    ] = None,
    slots: Slots = 1,
    output: OutputOption = Output.TEXT,
) -> None:
    """Mean latency and queue length by utilization: M/M/1, or M/M/c with --slots."""
    from headroom.cli.commands.plan.calculators import queue_table

    with exit_on_invalid_input():
        show(*queue_table(rate, slots, utilization or None), output)


def fan_out(
    percentile: Percentile = 99.0,
    calls: Annotated[
        list[int] | None, typer.Option(help="Parallel calls of a request; repeat it for several.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """The percentile that each of n parallel calls must meet."""
    from headroom.cli.commands.plan.arguments import ratio
    from headroom.cli.commands.plan.calculators import fan_out_table

    with exit_on_invalid_input():
        show(*fan_out_table(ratio(percentile), calls or [1, 2, 5, 10, 20]), output)


def budget(
    stage: Annotated[
        list[str], typer.Option(help="name=time; repeat it for each sequential stage.")
    ],
    target: Annotated[str, typer.Option(help="Latency target of all stages together.")],
    percentile: Percentile = 95.0,
    speedup: Annotated[
        list[str] | None, typer.Option(help="name=factor: the gain if that stage is faster.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """A latency budget over stages: the bottleneck, and Amdahl's bound for a faster stage."""
    from headroom.cli.commands.plan.arguments import number, pair, ratio, seconds
    from headroom.cli.commands.plan.calculators import budget_table

    with exit_on_invalid_input():
        stages = [(name, seconds("--stage", text)) for name, text in map(pair, stage)]
        factors = [(name, number("--speedup", text)) for name, text in map(pair, speedup or [])]
        target_s = seconds("--target", target)
        show(*budget_table(stages, target_s, ratio(percentile), factors), output)


def kv_cache(
    layers: Annotated[int, typer.Option(help="Transformer layers.")],
    width: Annotated[int, typer.Option(help="Hidden size.")],
    tokens: Annotated[int, typer.Option(help="Tokens of a sequence: prompt and answer.")] = 4096,
    value_bytes: Annotated[
        float, typer.Option("--bytes", help="Bytes per value; 2 is fp16.")
    ] = 2.0,
    heads: Annotated[int | None, typer.Option(help="Attention heads.")] = None,
    kv_heads: Annotated[int | None, typer.Option(help="Key-value heads, if fewer.")] = None,
    head_dim: Annotated[
        int | None,
        typer.Option(help="Size of a head, if config.json has head_dim; default: width/heads."),
    ] = None,
    memory: Annotated[
        float | None, typer.Option(help="GiB that the server may use; vLLM takes 0.9 of the GPU's.")
    ] = None,
    weights: Annotated[float, typer.Option(help="GiB of the weights.")] = 0.0,
    output: OutputOption = Output.TEXT,
) -> None:
    """The size of a transformer's key-value cache, and how many sequences fit into memory."""
    from headroom.cli.commands.plan.arguments import missing
    from headroom.cli.commands.plan.calculators import kv_cache_table
    from headroom.planner.generation.kv_cache import share_of_heads

    with exit_on_invalid_input():
        if (heads is None) != (kv_heads is None):
            missing("--heads" if heads is None else "--kv-heads", "32")
        if head_dim is not None:
            if heads is None:
                missing("--heads, which --head-dim applies to,", "32")
            width = heads * head_dim
        shared = 1.0 if heads is None or kv_heads is None else share_of_heads(heads, kv_heads)
        sized = kv_cache_table(layers, width, tokens, value_bytes, shared, memory, weights)
        show(*sized, output)
