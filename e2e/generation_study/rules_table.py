"""The table of `rules.py`, and what it runs on: a sample of develop and own workloads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor

from rich.console import Console
from rich.table import Table

from generation_study import cells, own_workloads, rules
from generation_study.own_workloads import Workload
from generation_study.rules import Rules

SAMPLE = ("family-6", "family-10", "family-14", "family-22")
"""Members of develop: its two worst, and two others."""
OWN_SEEDS = (1, 2)
_SHOWN = 3


def main(console: Console, workers: int) -> int:
    """Run the sample and print the table."""
    found = [cell for cell in cells.family("develop", 40) if cell.workload in SAMPLE]
    sample = [
        Workload(name=cell.name, service=cells.begun(cell), requests=cells.requests_of(cell))
        for cell in found
    ]
    for seed in OWN_SEEDS:
        sample += own_workloads.workloads(seed)
    with ProcessPoolExecutor(max_workers=workers) as pool:
        console.print(table(pool.map(rules.of_run, sample)))
    return 0


def table(found: Iterable[Rules]) -> Table:
    """Return a row for each run."""
    shown = Table("workload", "kept", "flaps", "late", "hours", "above", "below", "capacity")
    for one in found:
        flaps = {f"{down}, {up}": float(n) for (down, up), n in one.flaps.items()}
        late = {cause.name: 100.0 * n / one.requests for cause, n in one.causes.items()}
        shown.add_row(
            one.name,
            f"{100 * one.attainment:.2f} %" if one.kept else f"{100 * one.attainment:.2f} % NO",
            _largest(flaps, "", ".0f", 0.5),
            _largest(late, " %", ".2f", 0.005),
            f"{one.hours:.2f} of {one.best_hours:.2f}",
            _largest(one.above, " h", ".2f", 0.005),
            f"{one.below:.2f}",
            " ".join(f"{ratio:.2f}" for ratio in one.capacities),
        )
    return shown


def _largest(parts: Mapping[str, float], unit: str, form: str, least: float) -> str:
    """Return the largest parts as text, one per line."""
    ordered = sorted(parts.items(), key=lambda item: -item[1])
    known = [(name, value) for name, value in ordered if value >= least]
    return "\n".join(f"{name} {value:{form}}{unit}" for name, value in known[:_SHOWN]) or "-"
