"""`python -m decision_study reactive`: cost of the best reactive autoscaler in hindsight."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import terminal
from decision_study import tables
from decision_study.family import cell_results, members, performing, reactive, samples
from decision_study.family.command import BOUNDS, FOLDER, RUNS, WIDTH_WITHOUT_TERMINAL
from decision_study.records import OURS, Job
from headroom.simulator.report.write import write_atomically


def main(argv: Sequence[str], folder: Path = FOLDER) -> int:
    """Run what is missing in workloads of *develop*, print the table."""
    given = _parser().parse_args(argv)
    console = terminal.console(width_without_terminal=WIDTH_WITHOUT_TERMINAL)
    names = samples.names(given)
    ours = Job(cell="", autoscaler=OURS)
    judged = [
        Job(cell=name, autoscaler=each.autoscaler, knobs=each.knobs, seed=members.SEED)
        for name in names
        for each in (ours, *BOUNDS)
    ]
    done = performing.complete(judged, folder / RUNS, workers=given.jobs, console=console)
    cells = cell_results.cells_of(done.values(), ours.setting)
    feasible = {cell.name: cell for cell in cells if cell.feasible}
    settings = [job for name in feasible for job in reactive.jobs(name)]
    runs = performing.complete(settings, folder / RUNS, workers=given.jobs, console=console)
    found = [
        reactive.compared(cell, [run for run in runs.values() if run.job.cell == name])
        for name, cell in feasible.items()
    ]
    grid = reactive.table(found)
    console.print(tables.for_terminal(grid))
    write_atomically(folder / "reactive.md", tables.as_markdown(grid))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="decision_study reactive",
        allow_abbrev=False,
        description="Compare Headroom with the cheapest setting of a reactive autoscaler that "
        "knows the true rate, chosen per workload in hindsight.",
    )
    samples.add_options(parser)
    return parser
