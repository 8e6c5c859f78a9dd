"""The table of `rules.py`, and its workloads: a sample of develop and own ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor

from rich.console import Console
from rich.table import Table

from generation_study import cells, own_workloads, rules
from generation_study.own_workloads import Workload
from generation_study.rules import Rules

SAMPLE = ("family-6", "family-10", "family-14", "family-22")
"""Members of develop: its two worst, and two others."""
OWN_SEEDS = (1, 2)
OWN_FILE = "own_workloads.py"
_SHOWN = 3


def main(console: Console, workers: int, wanted: Collection[str] = ()) -> int:
    """Run the wanted workloads, or the sample, and print the table; 2 for an unknown name."""
    members = cells.family("develop", 40)
    own = [one for seed in OWN_SEEDS for one in own_workloads.workloads(seed)]
    known = {cell.workload for cell in members} | {kind_of(one) for one in own}
    if unknown := set(wanted) - known:
        names = ", ".join(sorted(unknown))
        console.print(f"--workloads must be members of develop or {OWN_FILE}'s; got {names}")
        return 2
    chosen = wanted or {*SAMPLE, *(kind_of(one) for one in own)}
    sample = [
        Workload(name=cell.name, service=cells.begun(cell), requests=cells.requests_of(cell))
        for cell in members
        if cell.workload in chosen
    ]
    sample += [one for one in own if kind_of(one) in chosen]
    with ProcessPoolExecutor(max_workers=workers) as pool:
        console.print(table(pool.map(rules.of_run, sample)))
    return 0


def kind_of(workload: Workload) -> str:
    """Return the name without replica and start-up time."""
    return workload.name.partition(" ")[0]


def table(found: Iterable[Rules]) -> Table:
    """Return a row for each run; NO where promises are broken, by Headroom or the clairvoyant."""
    shown = Table("workload", "kept", "flaps", "late", "hours", "above", "below", "capacity")
    for one in found:
        flaps = {f"{down}, {up}": float(n) for (down, up), n in one.flaps.items()}
        late = {cause.name: 100.0 * n / one.requests for cause, n in one.causes.items()}
        shown.add_row(
            one.name,
            f"{100 * one.attainment:.2f} %" if one.kept else f"{100 * one.attainment:.2f} % NO",
            _largest(flaps, "", ".0f", 0.5),
            _largest(late, " %", ".2f", 0.005),
            f"{one.hours:.2f} of {one.best_hours:.2f}{'' if one.best_kept else ' NO'}",
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
