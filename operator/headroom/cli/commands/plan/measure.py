"""Measures a live server: rates rise until the target is missed; Ctrl-C keeps the steps so far."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from headroom.adapters.load_measurement import LiveServer, MeasuredStep
from headroom.cli.commands.plan.output import finite, ms
from headroom.errors import Unmeasurable
from headroom.planner.cost_from_load import MeasuredCost, cost_of
from headroom.planner.errors import positive, require
from headroom.planner.load_sweep import (
    SweepBounds,
    first_rate,
    latency_of,
    met,
    next_rate,
    result_of,
    step_seconds,
)
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values.observation import CostModel

LATE_SHARE = 0.1
"""Steps with requests sent later than this share of the target measure the generator."""
LONGEST_S = 3600.0
HIGHEST_RATE_RPS = 20_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The result of a sweep as JSON and text, and the cost to plan with."""

    cost: CostModel
    report: dict[str, Any]
    table: RenderableType
    interrupted: bool


@dataclass(slots=True, kw_only=True)
class _Sweep:
    """The state of a sweep, also when it is interrupted."""

    bounds: SweepBounds
    step_s: float
    max_duration_s: float
    steps: list[MeasuredStep] = field(default_factory=list)
    advertised: CostModel | None = None
    idle_s: float | None = None
    interrupted: bool = False
    out_of_time: bool = False


def measured(
    url: str,
    *,
    model: str | None,
    body: Path | None,
    max_batch: int | None,
    target_s: float,
    percentile: float,
    max_rate_rps: float,
    step_s: float,
    max_duration_s: float,
) -> Measured:
    """Load one replica at rising rates. Raises Unmeasurable, ImpossiblePlan, OSError."""
    positive("--step", step_s, "4s gives stable percentiles")
    require(
        step_s <= max_duration_s <= LONGEST_S,
        "--max-duration must be between --step and 1h",
        f"{max_duration_s:g} s",
        "Give 3m",
    )
    require(
        max_rate_rps <= HIGHEST_RATE_RPS,
        f"--max-rate must be at most {HIGHEST_RATE_RPS:g}",
        f"{max_rate_rps:g}",
        "One process sends no more; measure one replica at a time",
    )
    sweep = _Sweep(
        bounds=SweepBounds(target_s=target_s, percentile=percentile, max_rate_rps=max_rate_rps),
        step_s=step_s,
        max_duration_s=max_duration_s,
    )
    server = LiveServer(
        url,
        model,
        timeout_s=min(60.0, max(1.0, 4 * target_s)),
        body=body.read_bytes() if body is not None else None,
    )
    asyncio.run(_until_interrupted(sweep, server))
    if not sweep.steps:
        raise Unmeasurable("interrupted before the first step was complete: let it run longer")
    found = cost_of(sweep.steps, sweep.advertised, max_batch)
    return _shown(sweep, found)


async def _until_interrupted(sweep: _Sweep, server: LiveServer) -> None:
    """Run the sweep; an interrupt ends it and discards the step in progress."""
    loop = asyncio.get_running_loop()
    running = asyncio.create_task(_run(sweep, server))
    loop.add_signal_handler(signal.SIGINT, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        sweep.interrupted = True
    finally:
        loop.remove_signal_handler(signal.SIGINT)


async def _run(sweep: _Sweep, server: LiveServer) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("one request at a time", total=sweep.max_duration_s)
        async with server:
            sweep.advertised = await server.learn()
            sweep.idle_s = await server.idle_s()
            require(
                sweep.idle_s <= sweep.bounds.target_s,
                f"--target must be at least {ms(sweep.idle_s)} (the time of a single request)",
                ms(sweep.bounds.target_s),
                "Increase the target or use a faster model; more replicas cannot help",
            )
            said = sweep.advertised.full_batch_rps if sweep.advertised else None
            first_rps = first_rate(sweep.idle_s, said, sweep.bounds)
            spent_s = 0.0
            while (rate := next_rate(sweep.steps, sweep.bounds, first_rps)) is not None:
                seconds = step_seconds(rate, sweep.bounds, sweep.step_s)
                if spent_s + seconds > sweep.max_duration_s:
                    sweep.out_of_time = True
                    break
                progress.update(task, description=f"{rate:.4g}/s for {seconds:.2g} s")
                step = await server.step(rate, seconds, seed=len(sweep.steps) + 1)
                sweep.steps.append(step)
                spent_s += seconds
                progress.update(task, completed=spent_s)


def _shown(sweep: _Sweep, found: MeasuredCost) -> Measured:
    bounds, cost = sweep.bounds, found.cost
    result = result_of(sweep.steps, bounds)
    modelled_rps = TailLatency(cost=cost, percentile=bounds.percentile).capacity_rps(
        bounds.target_s, 1
    )
    late = [one for one in sweep.steps if one.late_s > LATE_SHARE * bounds.target_s]
    lines = [_verdict(sweep)]
    lines += [
        (
            f"cost of a batch: {ms(cost.fixed_s)} + {ms(cost.per_item_s)} x size, up to "
            f"{cost.max_batch}, from {found.source}"
        ),
        (
            f"throughput with full batches: {cost.full_batch_rps:.4g} req/s; modelled capacity "
            f"within the target: {modelled_rps:.4g} req/s"
        ),
    ]
    if late:
        lines.append(
            f"from {min(one.rate_rps for one in late):.4g} req/s on this machine sent late: those "
            "steps measure the generator; use a faster machine"
        )
    report = {
        "metRps": result.met_rps,
        "missedRps": result.missed_rps,
        "modelledRps": modelled_rps,
        "cost": {
            "fixedSeconds": cost.fixed_s,
            "perItemSeconds": cost.per_item_s,
            "maxBatch": cost.max_batch,
            "source": found.source.name.lower(),
        },
        "idleSeconds": sweep.idle_s,
        "interrupted": sweep.interrupted,
        "outOfTime": sweep.out_of_time,
        "generatorLateFromRps": min((one.rate_rps for one in late), default=None),
        "steps": [_step_entry(one, bounds) for one in sweep.steps],
    }
    table = Group(_table(sweep), *map(Text, lines), Text())
    return Measured(cost=cost, report=report, table=table, interrupted=sweep.interrupted)


def _verdict(sweep: _Sweep) -> str:
    result, bounds = result_of(sweep.steps, sweep.bounds), sweep.bounds
    target = f"p{100 * bounds.percentile:g} within {ms(bounds.target_s)}"
    if sweep.interrupted:
        end = "interrupted; so far: "
    elif sweep.out_of_time:
        end = "out of time (--max-duration); so far: "
    else:
        end = ""
    if result.met_rps is None:
        return f"{end}{target}: missed at {result.missed_rps:.4g} req/s and at every other rate"
    if result.missed_rps is None:
        return f"{end}{target}: met up to {result.met_rps:.4g} req/s; higher rates were not tried"
    return (
        f"{end}{target}: met at {result.met_rps:.4g} req/s, missed at {result.missed_rps:.4g} req/s"
    )


def _table(sweep: _Sweep) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("rate", "requests", "missed", "p50", "p95", "p99", "mean batch", "met"):
        table.add_column(column, justify="right")
    for one in sorted(sweep.steps, key=lambda step: step.rate_rps):
        batch = one.batch_items / one.batches if one.batch_items and one.batches else None
        table.add_row(
            f"{one.rate_rps:.4g}/s",
            str(len(one.latencies_s) + one.missed),
            str(one.missed),
            *(_latency(one, p) for p in (0.50, 0.95, 0.99)),
            "unknown" if batch is None else f"{batch:.2f}",
            "yes" if met(one, sweep.bounds) else "no",
        )
    return table


def _latency(step: MeasuredStep, percentile: float) -> str:
    latency_s = latency_of(step, percentile)
    return "missed" if finite(latency_s) is None else ms(latency_s)


def _step_entry(step: MeasuredStep, bounds: SweepBounds) -> dict[str, Any]:
    return {
        "rateRps": step.rate_rps,
        "requests": len(step.latencies_s) + step.missed,
        "missed": step.missed,
        **{f"p{p}Seconds": finite(latency_of(step, p / 100)) for p in (50, 95, 99)},
        "batches": step.batches,
        "batchItems": step.batch_items,
        "batchSeconds": step.batch_seconds,
        "met": met(step, bounds),
    }
