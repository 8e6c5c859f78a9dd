"""`headroom plan`: replicas for a rate, a trace or a measured server, and calculators."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headroom.cli.cluster_options import Output, OutputOption
from headroom.cli.commands.plan.calculator_commands import (
    budget,
    fan_out,
    feasibility,
    kv_cache,
    queue,
)
from headroom.cli.commands.plan.generation_command import generation
from headroom.cli.commands.plan.options import (
    OUTPUT,
    ColdStart,
    CostOptions,
    Headroom,
    MaxBatch,
    MaxUtilization,
    MinReplicas,
    Percentile,
    Rate,
    RequiredTarget,
    ServingOptions,
    SloOptions,
    Wait,
)
from headroom.cli.commands.plan.output import exit_on_invalid_input, show
from headroom.cli.messages import say
from headroom.cli.option_groups import with_option_groups

if TYPE_CHECKING:
    from rich.console import RenderableType

app = typer.Typer(
    name="plan",
    help="""Plan capacity: replicas and GPU-hours for a load, a cost and an SLO.

A replica that batches takes --batch-overhead + --per-item-time x size, up to --max-batch.
A replica that runs requests concurrently has --slots of --service-time each.
A model that generates text is planned from the lengths of prompts and answers, by `generation`.
Rates are per second; times are written 6ms, 2s or 3m.

headroom plan rate 400 --batch-overhead 6ms --per-item-time 4ms --max-batch 8

headroom plan rate 50 --slots 8 --service-time 2s --max-utilization 0.8

headroom plan trace load.csv --batch-overhead 6ms --per-item-time 4ms --cold-start 90s

headroom plan measure http://127.0.0.1:8000 --target 120ms --rate 400

headroom plan generation 10 --prompt 4000 --answer 1000 --on qwen3-32b/2xh100 --first-token 3s
""",
    no_args_is_help=True,
    add_completion=False,
)

INTERRUPTED = 130
"""Exit code of a command that SIGINT ended, as in a shell."""


@app.command()
@with_option_groups
def rate(
    arrivals: Rate,
    cost: CostOptions,
    serving: ServingOptions,
    slo: SloOptions,
    wait: Wait = "0s",
    curve: Annotated[
        bool, typer.Option("--curve", help="Print latency by utilization.", rich_help_panel=OUTPUT)
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Draw latency by utilization in this .svg, .png or .pdf file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Replicas for a constant rate of requests."""
    from headroom.cli.commands.plan.arguments import cost_of, seconds, service_with
    from headroom.cli.commands.plan.latency_curve import curve_of, picture_kind, write_plot
    from headroom.cli.commands.plan.replicas import planned_rate

    with exit_on_invalid_input():
        if out is not None:
            picture_kind(out)
        service = service_with(serving, slo)
        found = planned_rate(service(cost_of(cost)), arrivals, seconds("--wait", wait))
        parts: list[tuple[str, Any, RenderableType]] = [("plan", found.report, found.view)]
        if curve:
            parts.append(("curve", *curve_of(found.plan)))
        show({name: one for name, one, _ in parts}, [one for *_, one in parts], output)
        if out is not None:
            write_plot(found.plan, out)
            say(f"wrote {out}")


@app.command()
@with_option_groups
def trace(
    name: Annotated[
        str, typer.Argument(metavar="TRACE", help="A trace file, or the name of a shipped trace.")
    ],
    cost: CostOptions,
    serving: ServingOptions,
    slo: SloOptions,
    window: Annotated[str, typer.Option(help="Length of a window.")] = "60s",
    scale: Annotated[float, typer.Option(help="Factor for the rates of the trace.")] = 1.0,
    cold_start: ColdStart = None,
    min_replicas: MinReplicas = 1,
    output: OutputOption = Output.TEXT,
) -> None:
    """Replicas and GPU-hours for a recorded load, window by window."""
    from headroom.cli.commands.plan.arguments import cost_of, seconds, service_with
    from headroom.cli.commands.plan.trace_plan import planned_trace

    with exit_on_invalid_input():
        service = service_with(serving, slo)
        found = planned_trace(
            service(cost_of(cost)),
            name,
            window_s=seconds("--window", window),
            scale=scale,
            cold_start_s=None if cold_start is None else seconds("--cold-start", cold_start),
            min_replicas=min_replicas,
        )
        show({"trace": found.report}, [found.view], output)


@app.command()
@with_option_groups
def measure(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="One replica, loaded until it misses the target.")
    ],
    target: RequiredTarget,
    serving: ServingOptions,
    percentile: Percentile = 95.0,
    max_utilization: MaxUtilization = 0.8,
    headroom: Headroom = 0.0,
    rate: Annotated[
        float | None, typer.Option(help="Requests per second to plan for with the measured cost.")
    ] = None,
    max_batch: MaxBatch = None,
    model: Annotated[
        str | None, typer.Option(help="Name of the model, if the server does not list it.")
    ] = None,
    body: Annotated[
        Path | None, typer.Option(help="JSON file with a request; default: ones as input.")
    ] = None,
    step: Annotated[str, typer.Option(help="Minimum time at each rate.")] = "4s",
    max_rate: Annotated[float, typer.Option(help="Highest rate to try.")] = 1000.0,
    max_duration: Annotated[str, typer.Option(help="Maximum time of the measurement.")] = "3m",
    output: OutputOption = Output.TEXT,
) -> None:
    """Measure the cost and the capacity of one live replica."""
    from headroom.cli.commands.plan.arguments import ratio, seconds, service_with
    from headroom.cli.commands.plan.measure import measured
    from headroom.cli.commands.plan.replicas import planned_rate

    slo = SloOptions(
        target=target, percentile=percentile, max_utilization=max_utilization, headroom=headroom
    )
    with exit_on_invalid_input():
        service = service_with(serving, slo)
        found = measured(
            url,
            model=model,
            body=body,
            max_batch=max_batch,
            target_s=seconds("--target", target),
            percentile=ratio(percentile),
            max_rate_rps=max_rate,
            step_s=seconds("--step", step),
            max_duration_s=seconds("--max-duration", max_duration),
        )
        report, views = {"measured": found.report}, [found.table]
        try:
            if rate is not None:
                planned = planned_rate(service(found.cost), rate, 0.0)
                report["plan"] = planned.report
                views.append(planned.view)
        finally:  # a sweep takes minutes: an error of the plan must not lose it
            show(report, views, output)
    if found.interrupted:
        raise typer.Exit(INTERRUPTED)


app.command()(with_option_groups(generation))
app.command()(with_option_groups(feasibility))
app.command()(queue)
app.command("fan-out")(fan_out)
app.command()(budget)
app.command("kv-cache")(kv_cache)
