"""`headroom plan`: replicas for arrivals, a trace or a measured server; and the sums beside it."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headroom.cli.plan_arguments import (
    cost_of,
    missing,
    not_both,
    number,
    pair,
    promise_of,
    ratio,
    seconds,
)
from headroom.cli.plan_options import (
    COST,
    LOAD,
    MEASURE,
    OUTPUT,
    TRACE,
    Ceiling,
    ColdStart,
    Fixed,
    Floor,
    Gpus,
    Headroom,
    Json,
    MaxBatch,
    Percentile,
    PerItem,
    RoutingOption,
    ServiceTime,
    Slots,
    Target,
    Variation,
)
from headroom.planner.errors import ImpossiblePlan

if TYPE_CHECKING:
    from rich.console import RenderableType

app = typer.Typer(
    name="plan",
    help="""Plan capacity: from arrivals, a cost and a promise to replicas and GPU-hours.

A replica that batches costs --fixed + --per-item x size, up to --max-batch.
One that runs requests side by side has --slots of --service-time each.
Rates are per second, times are written 6ms, 2s or 3m.

headroom plan --arrivals 400 --fixed 6ms --per-item 4ms --max-batch 8

headroom plan --arrivals 50 --slots 8 --service-time 2s --ceiling 0.8

headroom plan --trace load.csv --fixed 6ms --per-item 4ms --cold-start 90s

headroom plan --measure http://127.0.0.1:8000 --target 120ms --arrivals 400
""",
    add_completion=False,
)

INTERRUPTED = 130
"""What a shell reports for a command that SIGINT ended."""


@app.callback(invoke_without_command=True)
def plan(
    context: typer.Context,
    arrivals: Annotated[
        float | None, typer.Option(help="Requests per second.", rich_help_panel=LOAD)
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(help="A trace file, or the name of a shipped one.", rich_help_panel=LOAD),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            help="URL of one live replica, to be loaded until it breaks.", rich_help_panel=LOAD
        ),
    ] = None,
    fixed: Fixed = None,
    per_item: PerItem = None,
    max_batch: MaxBatch = None,
    slots: Slots = 1,
    service_time: ServiceTime = None,
    cv: Variation = None,
    target: Target = None,
    percentile: Percentile = 95.0,
    ceiling: Ceiling = 0.8,
    headroom: Headroom = 0.0,
    routing: RoutingOption = "random",
    gpus: Gpus = 1,
    wait: Annotated[
        str,
        typer.Option(
            help="Batching wait of a server that has one; ours has none.", rich_help_panel=COST
        ),
    ] = "0s",
    window: Annotated[str, typer.Option(help="Length of a window.", rich_help_panel=TRACE)] = "60s",
    scale: Annotated[
        float, typer.Option(help="Multiplies its rates.", rich_help_panel=TRACE)
    ] = 1.0,
    cold_start: ColdStart = None,
    floor: Floor = 1,
    model: Annotated[
        str | None,
        typer.Option(
            help="The model's name, where the server does not say it.", rich_help_panel=MEASURE
        ),
    ] = None,
    body: Annotated[
        Path | None,
        typer.Option(help="A request as JSON, where ones will not do.", rich_help_panel=MEASURE),
    ] = None,
    step: Annotated[
        str, typer.Option(help="Least time at a rate.", rich_help_panel=MEASURE)
    ] = "4s",
    max_rate: Annotated[
        float, typer.Option(help="Highest rate to try.", rich_help_panel=MEASURE)
    ] = 1000.0,
    max_duration: Annotated[
        str, typer.Option(help="End after this long.", rich_help_panel=MEASURE)
    ] = "3m",
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Write the utilization curve: .svg, .png or .pdf.", rich_help_panel=OUTPUT
        ),
    ] = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="Latency by utilization.", rich_help_panel=OUTPUT)
    ] = False,
    as_json: Json = False,
) -> None:
    """Replicas for arrivals, a trace or a measured server."""
    if context.invoked_subcommand is not None:
        return
    if arrivals is None and trace is None and measure is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)
    from headroom.cli.plan_replicas import curve_of, picture_kind, planned_rate, write_plot
    from headroom.cli.plan_trace import planned_trace

    interrupted = False
    shown: list[tuple[str, Any, RenderableType]] = []
    with refusing():
        if arrivals is None and (plot is not None or curve):
            missing("--arrivals for --plot and --curve", "--arrivals 400")
        if plot is not None:
            picture_kind(plot)
        service_with = promise_of(target, percentile, ceiling, headroom, routing, gpus)
        try:
            if measure is None:
                cost = cost_of(fixed, per_item, max_batch, slots, service_time, cv)
            else:
                from headroom.cli.plan_measure import measured

                not_both(measure, fixed or per_item or service_time)
                found = measured(
                    measure,
                    model=model,
                    body=body,
                    max_batch=max_batch,
                    target_s=seconds("--target", target or missing("--target", "250ms")),
                    percentile=ratio(percentile),
                    max_rate_rps=max_rate,
                    step_s=seconds("--step", step),
                    max_duration_s=seconds("--max-duration", max_duration),
                )
                shown.append(("measured", found.report, found.table))
                cost, interrupted = found.cost, found.interrupted
            if arrivals is not None:
                rate = planned_rate(service_with(cost), arrivals, seconds("--wait", wait))
                shown.append(("plan", rate.report, rate.view))
                if curve:
                    shown.append(("curve", *curve_of(rate.plan)))
                if plot is not None:
                    write_plot(rate.plan, plot)
            if trace is not None:
                load = planned_trace(
                    service_with(cost),
                    trace,
                    window_s=seconds("--window", window),
                    scale=scale,
                    cold_start_s=None
                    if cold_start is None
                    else seconds("--cold-start", cold_start),
                    floor=floor,
                )
                shown.append(("trace", load.report, load.view))
        finally:  # a sweep takes minutes: what it found is not lost to an error after it
            if shown:
                _show({name: one for name, one, _ in shown}, [one for *_, one in shown], as_json)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


@app.command()
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
    from headroom.cli.plan_trace import promised
    from headroom.planner.demand import Service

    with refusing():
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
        _show(found.report, [found.view], as_json)


@app.command()
def queue(
    rate: Annotated[float, typer.Option(help="Requests per second that a busy server carries.")],
    utilization: Annotated[
        list[float] | None, typer.Option(help="0 to 1; repeat for several.")
    ] = None,
    slots: Slots = 1,
    as_json: Json = False,
) -> None:
    """Mean latency and queue length by utilization: M/M/1, or M/M/c with --slots."""
    from headroom.cli.plan_sums import queue_sums

    with refusing():
        _show(*queue_sums(rate, slots, utilization or None), as_json)


@app.command("fan-out")
def fan_out(
    percentile: Percentile = 99.0,
    calls: Annotated[
        list[int] | None, typer.Option(help="Parallel calls of a request; repeat for several.")
    ] = None,
    as_json: Json = False,
) -> None:
    """The percentile that each of n parallel calls must meet."""
    from headroom.cli.plan_sums import fan_out_sums

    with refusing():
        _show(*fan_out_sums(ratio(percentile), calls or [1, 2, 5, 10, 20]), as_json)


@app.command()
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
    from headroom.cli.plan_sums import budget_sums

    with refusing():
        stages = [(name, seconds("--stage", text)) for name, text in map(pair, stage)]
        factors = [(name, number("--speedup", text)) for name, text in map(pair, speedup or [])]
        target_s = seconds("--target", target)
        _show(*budget_sums(stages, target_s, ratio(percentile), factors), as_json)


@app.command("kv-cache")
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
    from headroom.cli.plan_sums import kv_cache_sums

    with refusing():
        if (heads is None) != (kv_heads is None):
            missing("--heads" if heads is None else "--kv-heads", "32")
        shared = 1.0 if heads is None or kv_heads is None else kv_heads / max(1, heads)
        _show(*kv_cache_sums(layers, width, tokens, value_bytes, shared, memory, weights), as_json)


@contextmanager
def refusing() -> Iterator[None]:
    """End with 2 and a sentence for what cannot be planned, measured or read."""
    from headroom.errors import Unmeasurable

    try:
        yield
    except (ImpossiblePlan, Unmeasurable, ValueError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None


def _show(report: object, views: list[RenderableType] | RenderableType, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(report, indent=2, allow_nan=False))
        return
    from rich.console import Console, Group

    console = Console(highlight=False, soft_wrap=True)
    console.print(Group(*views) if isinstance(views, list) else views)
