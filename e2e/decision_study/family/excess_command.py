"""`python -m decision_study excess`: what Headroom pays for above the clairvoyant, and where."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from rich.console import Console

import terminal
from decision_study import cells, plan, running, tables
from decision_study.family import cell_results, members, performing, samples, watched
from decision_study.family.command import BOUNDS, FOLDER, RUNS, WIDTH_WITHOUT_TERMINAL
from decision_study.family.excess import LAYERS
from decision_study.family.watched import Attribution
from decision_study.records import CLAIRVOYANT, OURS, Job
from decision_study.tables import Grid
from headroom.simulator.report.write import write_atomically


def main(argv: Sequence[str], folder: Path = FOLDER) -> int:
    """Run Headroom and the clairvoyant in the cells that are asked for; print the tables."""
    parser = _parser()
    given = parser.parse_args(argv)
    console = terminal.console(width_without_terminal=WIDTH_WITHOUT_TERMINAL)
    if given.cells is None:
        bounds = _members(samples.names(given), folder / RUNS, given.jobs, console)
    else:
        names = plan.matching((cell.name for cell in cells.CELLS), given.cells)
        if not names:
            parser.error(f"no cell matches {given.cells!r}; cells.py names them")
        bounds = {name: Job(cell=name, autoscaler=CLAIRVOYANT, seed=given.seed) for name in names}
    found: list[Attribution] = []

    def finished(_job: Job, result: Attribution | Exception) -> None:
        if isinstance(result, Exception):
            raise result
        found.append(result)

    ours = [Job(cell=name, autoscaler=OURS, seed=bound.seed) for name, bound in bounds.items()]
    perform = partial(watched.perform, bounds=bounds)
    running.carry_out(ours, workers=given.jobs, perform=perform, finished=finished)
    found.sort(key=lambda each: each.cell)
    grids = (table(found), above_table(found))
    for grid in grids:
        console.print(tables.for_terminal(grid))
    write_atomically(folder / "excess.md", "\n".join(map(tables.as_markdown, grids)))
    return 0


def _members(names: Sequence[str], kept: Path, workers: int, console: Console) -> Mapping[str, Job]:
    """Return the cheapest clairvoyant that keeps the promise, of each member that has one."""
    jobs = [
        Job(cell=name, autoscaler=CLAIRVOYANT, knobs=each.knobs, seed=members.SEED)
        for name in names
        for each in BOUNDS
        if each.autoscaler == CLAIRVOYANT
    ]
    known = performing.complete(jobs, kept, workers=workers, console=console)
    best = {
        name: cell_results.yardstick([row for row in known.values() if row.job.cell == name])
        for name in names
    }
    return {
        name: bound.job
        for name, bound in best.items()
        if bound is not None and bound.attainment >= cell_results.KEPT and bound.gpu_hours > 0
    }


def table(found: Sequence[Attribution]) -> Grid:
    """Return a row per cell and their mean, in units of the clairvoyant's GPU-hours."""
    shares = [[hours / cell.bound_gpu_hours for hours in cell.gpu_hours] for cell in found]
    rows = [
        (cell.cell, f"{100 * cell.attainment:.1f}", f"{sum(row):.2f}", *map(_shown, row))
        for cell, row in zip(found, shares, strict=True)
    ]
    if found:
        means = [fmean(column) for column in zip(*shares, strict=True)]
        attained = 100 * fmean(cell.attainment for cell in found)
        rows.append(("mean", f"{attained:.1f}", f"{sum(means):.2f}", *map(_shown, means)))
    return Grid(
        title="What each layer of the decision costs, over the clairvoyant's GPU-hours",
        columns=("cell", "attainment %", "cost", *LAYERS),
        rows=tuple(rows),
        note="Members: feasible ones, after the first hour. The clairvoyant is 1; each layer is "
        "what its part adds to those before it.",
    )


def above_table(found: Sequence[Attribution]) -> Grid:
    """Return a row per class of workload and one of all: sums, over the clairvoyant's in sum."""
    groups: dict[str, list[Attribution]] = {}
    for cell in found:
        groups.setdefault(_class_of(cell.cell), []).append(cell)
    rows = []
    every = (("all", list(found)),) if found else ()
    for name, group in (*sorted(groups.items()), *every):
        below = sum(cell.bound_gpu_hours for cell in group)
        columns = zip(*(cell.above_gpu_hours for cell in group), strict=True)
        shares = [sum(column) / below for column in columns]
        rows.append((name, str(len(group)), f"{sum(shares):.2f}", *map(_shown, shares)))
    return Grid(
        title="GPU-hours above what the clairvoyant holds at the same instant",
        columns=("class", "cells", "above", *LAYERS),
        rows=tuple(rows),
        note="In units of the clairvoyant's GPU-hours in sum. What Headroom holds less at other "
        "instants is not subtracted.",
    )


def _class_of(cell: str) -> str:
    """Return the workload of a cell: of a member, `develop-000-jumps`, the last part."""
    return cell.partition("/")[0] if "/" in cell else cell.split("-", 2)[-1]


def _shown(share: float) -> str:
    return f"{share:.2f}" if abs(share) >= 0.005 else "-"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="decision_study excess",
        allow_abbrev=False,
        description="Divide what Headroom costs above the clairvoyant among the layers of its "
        "decision: forecast, risk, margins, holds.",
    )
    samples.add_options(parser)
    add = parser.add_argument
    add("--cells", metavar="PATTERN", help="cells of `decision_study` instead, e.g. 'servegen*'")
    add("--seed", type=int, default=1, metavar="N", help="of these cells (1)")
    return parser
