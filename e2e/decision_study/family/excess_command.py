"""`python -m decision_study excess`: what Headroom pays for above the clairvoyant, and where."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

import terminal
from decision_study import running, tables
from decision_study.family import cell_results, members, performing, samples, watched
from decision_study.family.command import BOUNDS, FOLDER, RUNS, WIDTH_WITHOUT_TERMINAL
from decision_study.family.excess import LAYERS
from decision_study.family.watched import Attribution
from decision_study.records import CLAIRVOYANT, OURS, Job
from decision_study.tables import Grid
from headroom.simulator.report.write import write_atomically

Cell = tuple[Attribution, float]
"""Cost of Headroom's layers, and the clairvoyant's GPU-hours."""


def main(argv: Sequence[str], folder: Path = FOLDER) -> int:
    """Run Headroom and the clairvoyant in cells of *develop*; print the table."""
    given = _parser().parse_args(argv)
    console = terminal.console(width_without_terminal=WIDTH_WITHOUT_TERMINAL)
    names = samples.names(given)
    bounds = [
        Job(cell=name, autoscaler=CLAIRVOYANT, knobs=each.knobs, seed=members.SEED)
        for name in names
        for each in BOUNDS
        if each.autoscaler == CLAIRVOYANT
    ]
    known = performing.complete(bounds, folder / RUNS, workers=given.jobs, console=console)
    best = {
        name: cell_results.yardstick([row for row in known.values() if row.job.cell == name])
        for name in names
    }
    feasible = {
        name: bound
        for name, bound in best.items()
        if bound is not None and bound.attainment >= cell_results.KEPT and bound.gpu_hours > 0
    }
    found: list[Cell] = []

    def finished(job: Job, result: Attribution | Exception) -> None:
        if isinstance(result, Exception):
            raise result
        found.append((result, feasible[job.cell].gpu_hours))

    ours = [Job(cell=name, autoscaler=OURS, seed=members.SEED) for name in feasible]
    perform = partial(watched.perform, bounds={name: one.job for name, one in feasible.items()})
    running.carry_out(ours, workers=given.jobs, perform=perform, finished=finished)
    cells = sorted(found, key=lambda cell: cell[0].cell)
    grids = (table(cells), above_table(cells))
    for grid in grids:
        console.print(tables.for_terminal(grid))
    write_atomically(folder / "excess.md", "\n".join(map(tables.as_markdown, grids)))
    return 0


def table(cells: Sequence[Cell]) -> Grid:
    """Return a row per feasible cell and their mean, in units of the clairvoyant's GPU-hours."""
    shares = [[hours / below for hours in cell.gpu_hours] for cell, below in cells]
    rows = [
        (cell.cell, f"{100 * cell.attainment:.1f}", f"{sum(row):.2f}", *map(_shown, row))
        for (cell, _), row in zip(cells, shares, strict=True)
    ]
    if cells:
        means = [fmean(column) for column in zip(*shares, strict=True)]
        attained = 100 * fmean(cell.attainment for cell, _ in cells)
        rows.append(("mean", f"{attained:.1f}", f"{sum(means):.2f}", *map(_shown, means)))
    return Grid(
        title="What each layer of the decision costs, over the clairvoyant's GPU-hours",
        columns=("cell", "attainment %", "cost", *LAYERS),
        rows=tuple(rows),
        note="After the first hour, in feasible cells. The clairvoyant is 1; each layer is what "
        "its part adds to those before it.",
    )


def above_table(cells: Sequence[Cell]) -> Grid:
    """Return a row per class of workload and one of all: sums, over the clairvoyant's in sum."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell[0].cell.split("-", 2)[-1], []).append(cell)
    rows = []
    every = (("all", list(cells)),) if cells else ()
    for name, group in (*sorted(groups.items()), *every):
        below = sum(hours for _, hours in group)
        columns = zip(*(cell.above_gpu_hours for cell, _ in group), strict=True)
        shares = [sum(column) / below for column in columns]
        rows.append((name, str(len(group)), f"{sum(shares):.2f}", *map(_shown, shares)))
    return Grid(
        title="GPU-hours above what the clairvoyant holds at the same instant",
        columns=("class", "cells", "above", *LAYERS),
        rows=tuple(rows),
        note="After the first hour, in feasible cells, in units of the clairvoyant's GPU-hours in "
        "sum. What Headroom holds less at other instants is not subtracted.",
    )


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
    return parser
