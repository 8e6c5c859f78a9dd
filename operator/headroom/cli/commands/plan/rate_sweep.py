"""Runs a sweep of rising rates on a live server; Ctrl-C keeps the steps so far."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from headroom.adapters.pods.live_server import LiveServer
from headroom.adapters.pods.load_measurement import MeasuredStep, idle_s, measured_step
from headroom.cli.commands.plan.output import ms
from headroom.planner.errors import require
from headroom.planner.load_sweep import SweepBounds, first_rate, next_rate, step_seconds
from headroom.scaling.values.observation import CostModel


@dataclass(slots=True, kw_only=True)
class RateSweep:
    """The state of a sweep, also when it is interrupted."""

    bounds: SweepBounds
    step_s: float
    max_duration_s: float
    steps: list[MeasuredStep] = field(default_factory=list)
    advertised: CostModel | None = None
    idle_s: float | None = None
    interrupted: bool = False
    out_of_time: bool = False


async def run_until_interrupted(sweep: RateSweep, server: LiveServer) -> None:
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


async def _run(sweep: RateSweep, server: LiveServer) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("one request at a time", total=sweep.max_duration_s)
        async with server:
            sweep.advertised = await server.learn()
            sweep.idle_s = await idle_s(server)
            require(
                sweep.idle_s <= sweep.bounds.target_s,
                f"--target must be at least {ms(sweep.idle_s)} (the time of a single request)",
                ms(sweep.bounds.target_s),
                "Increase the target or use a faster model; more replicas cannot help",
            )
            advertised_rps = sweep.advertised.full_batch_rps if sweep.advertised else None
            first_rps = first_rate(sweep.idle_s, advertised_rps, sweep.bounds)
            spent_s = 0.0
            while (rate := next_rate(sweep.steps, sweep.bounds, first_rps)) is not None:
                seconds = step_seconds(rate, sweep.bounds, sweep.step_s)
                if spent_s + seconds > sweep.max_duration_s:
                    sweep.out_of_time = True
                    break
                progress.update(task, description=f"{rate:.4g}/s for {seconds:.2g} s")
                step = await measured_step(server, rate, seconds, seed=len(sweep.steps) + 1)
                sweep.steps.append(step)
                spent_s += seconds
                progress.update(task, completed=spent_s)
