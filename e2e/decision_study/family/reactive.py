"""Cheapest reactive autoscaler of each workload in hindsight, compared with Headroom. Pure.

The ideal reactive autoscaler reads the true rate of the last seconds without delay. Here its
utilization ceiling and its hold are chosen per workload after the fact. What Headroom costs above
this choice could be saved by a better decision; what this choice costs above the clairvoyant is the
price of not knowing the future.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from decision_study.family.cell_results import KEPT, CellResult
from decision_study.family.kept import Kept
from decision_study.family.members import SEED
from decision_study.records import IDEAL, Job
from decision_study.tables import Grid

CEILINGS = (0.3, 0.45, 0.6, 0.7, 0.8)
HOLDS_S = (30.0, 120.0, 300.0, 900.0, 1800.0, 3600.0)
MOST_FLAPS = 4.0
"""Flaps an hour that issue 21 allows the worst workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Headroom, the clairvoyant and the reactive autoscaler of one feasible workload."""

    cell: CellResult
    calm: Kept | None
    """The cheapest setting that keeps the promise with at most `MOST_FLAPS`, if one does."""
    cheapest: Kept | None
    """The cheapest setting that keeps the promise, whatever its flaps."""

    def over(self, run: Kept | None) -> float | None:
        """Return the GPU-hours of a run over the clairvoyant's; None without a run."""
        yardstick = self.cell.yardstick
        if run is None or yardstick is None or yardstick.gpu_hours <= 0:
            return None
        return run.gpu_hours / yardstick.gpu_hours


def jobs(name: str) -> list[Job]:
    """Return the runs of every setting in one workload."""
    return [
        Job(
            cell=name,
            autoscaler=IDEAL,
            knobs=(("ceiling", ceiling), ("hold_s", hold_s)),
            seed=SEED,
        )
        for hold_s, ceiling in product(HOLDS_S, CEILINGS)
    ]


def compared(cell: CellResult, runs: Sequence[Kept]) -> Compared:
    """Return the cheapest settings of a workload.

    Worked: of 2.0 GPU-hours with 9 flaps an hour at 96 % in time, 3.0 with 1 at 97 % and 1.5 with
    1 at 94 %, the cheapest is the first and the calm one the second.
    """
    keeping = sorted((run for run in runs if run.attainment >= KEPT), key=lambda run: run.gpu_hours)
    calm = (run for run in keeping if run.flaps_per_hour <= MOST_FLAPS)
    return Compared(cell=cell, calm=next(calm, None), cheapest=next(iter(keeping), None))


def table(found: Sequence[Compared]) -> Grid:
    """Return a row per class of workload and one of all: means over the workloads."""
    groups: dict[str, list[Compared]] = {}
    for each in found:
        groups.setdefault(each.cell.load, []).append(each)
    every: Mapping[str, Sequence[Compared]] = {**dict(sorted(groups.items())), "all": found}
    return Grid(
        title="GPU-hours over the clairvoyant's: Headroom and the best reactive setting",
        columns=(
            *("class", "workloads", "kept", "Headroom", f"at most {MOST_FLAPS:.0f} flaps/h"),
            *("found in", "any flaps", "its flaps/h"),
        ),
        rows=tuple(_row(name, group) for name, group in every.items() if group),
        note="After the first hour, in feasible workloads; means. The reactive autoscaler reads "
        "the true rate of the last 10 s; its ceiling and hold are the cheapest that keep the "
        "promise, per workload and in hindsight.",
    )


def _row(name: str, group: Sequence[Compared]) -> tuple[str, ...]:
    cheapest = [each.cheapest for each in group if each.cheapest is not None]
    return (
        name,
        str(len(group)),
        str(sum(each.cell.kept for each in group)),
        _mean([each.over(each.cell.ours) for each in group]),
        _mean([each.over(each.calm) for each in group]),
        str(sum(each.calm is not None for each in group)),
        _mean([each.over(each.cheapest) for each in group]),
        f"{fmean(run.flaps_per_hour for run in cheapest):.0f}" if cheapest else "-",
    )


def _mean(ratios: Sequence[float | None]) -> str:
    known = [ratio for ratio in ratios if ratio is not None]
    return f"{fmean(known):.2f}x" if known else "-"
