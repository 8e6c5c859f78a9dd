"""Turns records of several seeds into one point per cell and setting. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from decision_study.records import CLAIRVOYANT, Record
from headroom.simulator.report.comparison import Estimate, estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One setting in one cell; means over its seeds. Fits `report.front`."""

    cell: str
    autoscaler: str
    knobs: tuple[tuple[str, float], ...]
    setting: str
    seeds: tuple[int, ...]
    attainment: Estimate
    gpu_hours: Estimate
    cost_ratio: float | None
    """GPU-hours over the clairvoyant's, seed by seed; None without common seeds."""
    flaps_per_hour: float
    most_flaps_per_hour: float
    """Flaps per hour of the worst run."""
    undone_per_hour: float | None
    """Removals followed by a flap; None if not counted."""
    settled_attainment: float
    by_seed: Mapping[int, Record]

    @property
    def misses(self) -> float:
        """Share of the requests that missed."""
        return 1.0 - self.attainment.mean

    @property
    def cost(self) -> float:
        """GPU-hours."""
        return self.gpu_hours.mean


def points_of(records: Iterable[Record]) -> tuple[Point, ...]:
    """Return the points, cells and settings in the order of their first record."""
    groups: dict[tuple[str, str], dict[int, Record]] = {}
    for record in records:
        group = groups.setdefault((record.job.cell, record.job.setting), {})
        group[record.job.seed] = record
    return tuple(
        _point(runs, groups.get((cell, CLAIRVOYANT), {})) for (cell, _), runs in groups.items()
    )


def _point(runs: Mapping[int, Record], yardstick: Mapping[int, Record]) -> Point:
    seeds = tuple(sorted(runs))
    ordered = [runs[seed] for seed in seeds]
    job = ordered[0].job
    ratios = [
        runs[seed].gpu_hours / yardstick[seed].gpu_hours
        for seed in seeds
        if seed in yardstick and yardstick[seed].gpu_hours > 0
    ]
    undone = [run.undone / (run.duration_s / 3600) for run in ordered if run.undone is not None]
    return Point(
        cell=job.cell,
        autoscaler=job.autoscaler,
        knobs=job.knobs,
        setting=job.setting,
        seeds=seeds,
        attainment=estimate([run.attainment for run in ordered]),
        gpu_hours=estimate([run.gpu_hours for run in ordered]),
        cost_ratio=fmean(ratios) if ratios else None,
        flaps_per_hour=fmean(run.flaps_per_hour for run in ordered),
        most_flaps_per_hour=max(run.flaps_per_hour for run in ordered),
        undone_per_hour=fmean(undone) if len(undone) == len(ordered) else None,
        settled_attainment=fmean(run.settled_attainment for run in ordered),
        by_seed=dict(runs),
    )


def mean_over(points: Iterable[Point]) -> tuple[float, float | None]:
    """Return mean attainment and mean cost ratio over cells; None if a cell has no clairvoyant."""
    rows = list(points)
    ratios = [row.cost_ratio for row in rows if row.cost_ratio is not None]
    whole = len(ratios) == len(rows) > 0
    return fmean(row.attainment.mean for row in rows), fmean(ratios) if whole else None
