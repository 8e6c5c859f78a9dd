"""`headroom plan measure`: loads one live replica at rising rates, and reports its capacity."""

from __future__ import annotations

import asyncio
from pathlib import Path

from headroom.adapters.pods.live_server import LiveServer
from headroom.cli.commands.plan.measured_report import Measured, report_of
from headroom.cli.commands.plan.rate_sweep import RateSweep, run_until_interrupted
from headroom.errors import Unmeasurable
from headroom.planner.cost_from_load import cost_of
from headroom.planner.errors import positive, require
from headroom.planner.load_sweep import SweepBounds

LONGEST_S = 3600.0
HIGHEST_RATE_RPS = 20_000.0


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
    sweep = RateSweep(
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
    asyncio.run(run_until_interrupted(sweep, server))
    if not sweep.steps:
        raise Unmeasurable("interrupted before the first step was complete: let it run longer")
    return report_of(sweep, cost_of(sweep.steps, sweep.advertised, max_batch))
