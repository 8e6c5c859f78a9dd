"""Prints the calculators as JSON and table: queue, fan-out, latency budget, KV cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headroom.cli.commands.plan.output import counted, finite, ms
from headroom.planner.errors import require
from headroom.planner.fan_out import percentile_of_all, percentile_of_each
from headroom.planner.generation.kv_cache import Transformer
from headroom.planner.latency_budget import Line, Stage, amdahl, budget
from headroom.planner.queueing import mm1_utilization, mmc_latency_s, mmc_waiting

Calculated = tuple[dict[str, Any], RenderableType]

UTILIZATIONS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
LONG_QUEUE = 10.0
GIB = 2.0**30
MIB = 2.0**20


def queue_table(rate_rps: float, slots: int, utilizations: Sequence[float] | None) -> Calculated:
    """Compute latency and queue length by utilization, and for one slot where ten wait."""
    rows = [
        (rho, mmc_latency_s(rate_rps, slots, rho), mmc_waiting(slots, rho))
        for rho in utilizations or UTILIZATIONS
    ]
    table = _table("utilization", "mean latency", "waiting")
    for rho, latency_s, waiting in rows:
        table.add_row(f"{100 * rho:g} %", ms(latency_s), f"{waiting:.4g}")
    report: dict[str, Any] = {
        "rows": [
            {"utilization": rho, "latencySeconds": latency_s, "waiting": waiting}
            for rho, latency_s, waiting in rows
        ]
    }
    if slots > 1:
        return report, table
    report["tenWaitFrom"] = mm1_utilization(LONG_QUEUE)
    crowded = f"more than {LONG_QUEUE:g} requests wait above {100 * report['tenWaitFrom']:.1f} %"
    return report, Group(table, Text(crowded))


def fan_out_table(percentile: float, calls: Sequence[int]) -> Calculated:
    """Compute what each of n calls must meet, and the total if each meets only the percentile."""
    rows = [(n, percentile_of_each(percentile, n), percentile_of_all(percentile, n)) for n in calls]
    name = f"p{100 * percentile:g}"
    table = _table("calls", f"each must meet, for {name}", f"total, if each meets {name}")
    for n, each, whole in rows:
        table.add_row(str(n), f"p{100 * each:.2f}", f"{100 * whole:.1f} %")
    return (
        {"rows": [{"calls": n, "each": each, "whole": whole} for n, each, whole in rows]},
        table,
    )


def budget_table(
    stages: Sequence[tuple[str, float]],
    target_s: float,
    percentile: float,
    speedups: Sequence[tuple[str, float]],
) -> Calculated:
    """Compare the stages with the target, and compute the gain of a faster stage."""
    planned = budget(
        [Stage(name=name, latency_s=latency_s) for name, latency_s in stages], target_s, percentile
    )
    table = _table("stage", "time", "share", "allowance", "must meet", "at 2x", "at best", "needs")
    for line in planned.lines:
        table.add_row(*_budget_row(line))
    shares = {line.stage.name: line.share for line in planned.lines}
    gains = [(name, factor, _gain(shares, name, factor)) for name, factor in speedups]
    slowest = planned.bottleneck
    verdict = "within" if planned.kept else "above"
    lines = [
        (
            f"{ms(planned.total_s)} in total, {verdict} the target of {ms(target_s)}; "
            f"slowest stage: {slowest.stage.name} ({100 * slowest.share:.0f} %)"
        )
    ]
    lines += [
        f"{name} at {factor:g}x: total {gain:.2f}x as fast, {ms(planned.total_s / gain)}"
        for name, factor, gain in gains
    ]
    return (
        {
            "totalSeconds": planned.total_s,
            "withinTarget": planned.kept,
            "bottleneck": slowest.stage.name,
            "stages": [_budget_entry(line) for line in planned.lines],
            "speedups": [
                {"stage": name, "factor": factor, "whole": gain} for name, factor, gain in gains
            ],
        },
        Group(table, *map(Text, lines)),
    )


def kv_cache_table(
    layers: int,
    width: int,
    tokens: int,
    value_bytes: float,
    kv_share: float,
    memory_gib: float | None,
    weights_gib: float,
) -> Calculated:
    """Compute the cache per token and per sequence, and the sequences that fit."""
    model = Transformer(layers=layers, width=width, bytes_per_value=value_bytes, kv_share=kv_share)
    cache = model.cache_bytes(tokens)
    report: dict[str, Any] = {"bytesPerToken": model.bytes_per_token, "bytesPerSequence": cache}
    lines = [
        (
            f"{model.bytes_per_token / MIB:.4g} MiB per token, "
            f"{cache / GIB:.4g} GiB for {tokens} tokens"
        )
    ]
    if memory_gib is not None:
        fits = model.sequences(tokens, memory_gib * GIB, weights_gib * GIB)
        room = model.tokens(memory_gib * GIB, weights_gib * GIB)
        report |= {"tokens": room, "sequences": fits}
        lines.append(
            f"{room} tokens fit besides {weights_gib:g} GiB of weights (plan generation "
            f"--kv-tokens {room}), as {counted(fits, 'sequence')} at once (plan rate --slots "
            f"{fits})"
        )
    return report, Group(*map(Text, lines))


def _gain(shares: dict[str, float], name: str, factor: float) -> float:
    require(
        name in shares,
        f"--speedup must name a stage of {', '.join(shares)}",
        name,
        "Name one of them",
    )
    return amdahl(shares[name], factor)


def _budget_row(line: Line) -> tuple[str, ...]:
    needed = "-" if line.needed_speedup is None else f"{line.needed_speedup:.2f}x"
    return (
        line.stage.name,
        ms(line.stage.latency_s),
        f"{100 * line.share:.0f} %",
        ms(line.allowance_s),
        f"p{100 * line.percentile:.4g}",
        ms(line.twice_as_fast_s),
        ms(line.best_s),
        needed,
    )


def _budget_entry(line: Line) -> dict[str, Any]:
    return {
        "name": line.stage.name,
        "seconds": line.stage.latency_s,
        "share": line.share,
        "allowanceSeconds": line.allowance_s,
        "percentile": line.percentile,
        "wholeAtTwiceSeconds": line.twice_as_fast_s,
        "wholeAtBestSeconds": line.best_s,
        "neededSpeedup": None if line.needed_speedup is None else finite(line.needed_speedup),
    }


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for number, column in enumerate(columns):
        left = number == 0 and column == "stage"
        table.add_column(column, justify="left" if left else "right")
    return table
