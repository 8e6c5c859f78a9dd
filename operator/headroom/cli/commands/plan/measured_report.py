"""Prints the measurements of a sweep of rates, as table and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headroom.adapters.pods.load_measurement import MeasuredStep
from headroom.cli.commands.plan.output import finite, ms
from headroom.cli.commands.plan.rate_sweep import RateSweep
from headroom.planner.cost_from_load import MeasuredCost
from headroom.planner.load_sweep import SweepBounds, latency_of, met, result_of
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values.observation import CostModel

LATE_SHARE = 0.1
"""Steps with requests sent later than this share of the target measure the generator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The result of a sweep as JSON and text, and the cost to plan with."""

    cost: CostModel
    report: dict[str, Any]
    table: RenderableType
    interrupted: bool


def report_of(sweep: RateSweep, found: MeasuredCost) -> Measured:
    """Render the steps of a sweep and the cost that was fitted to them."""
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
            f"from {min(one.rate_rps for one in late):.4g} req/s on, this machine sent requests "
            "late: those steps measure the generator; use a faster machine"
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


def _verdict(sweep: RateSweep) -> str:
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


def _table(sweep: RateSweep) -> Table:
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
