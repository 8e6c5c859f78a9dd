"""`headroom plan`: replicas for arrivals, a trace or a measured server."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headroom.cli.commands.plan.calculator_commands import budget, fan_out, kv_cache, promise, queue
from headroom.cli.commands.plan.options import (
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
from headroom.cli.commands.plan.output import exit_on_invalid_input, show

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
    from headroom.cli.commands.plan.arguments import (
        cost_of,
        missing,
        not_both,
        promise_of,
        ratio,
        seconds,
    )
    from headroom.cli.commands.plan.replicas import curve_of, picture_kind, planned_rate, write_plot
    from headroom.cli.commands.plan.trace_plan import planned_trace

    interrupted = False
    shown: list[tuple[str, Any, RenderableType]] = []
    with exit_on_invalid_input():
        if arrivals is None and (plot is not None or curve):
            missing("--arrivals for --plot and --curve", "--arrivals 400")
        if plot is not None:
            picture_kind(plot)
        service_with = promise_of(target, percentile, ceiling, headroom, routing, gpus)
        try:
            if measure is None:
                cost = cost_of(fixed, per_item, max_batch, slots, service_time, cv)
            else:
                from headroom.cli.commands.plan.measure import measured

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
                show({name: one for name, one, _ in shown}, [one for *_, one in shown], as_json)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


app.command()(promise)
app.command()(queue)
app.command("fan-out")(fan_out)
app.command()(budget)
app.command("kv-cache")(kv_cache)
