"""Plans the runs: a sweep with one seed, then more seeds for the settings that matter. Pure.

first   every cell x every peer x its grid with seed 1; Headroom and the bounds with all seeds
second  all other seeds for settings on the front of a cell, settings that beat Headroom in it, and
        on request every peer's defaults
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from decision_study.hindsight import margin
from decision_study.points import Point
from decision_study.records import OURS, Job
from headroom.simulator.report.comparison import front

Setting = Mapping[str, float]
Grids = Mapping[str, Sequence[Setting]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The selected part of the study."""

    cells: tuple[str, ...]
    autoscalers: tuple[str, ...]
    extras: tuple[str, ...] = ()
    """Cells for Headroom alone: wrong claims and faults."""
    seeds: int = 5
    settings_each: int | None = None
    """Maximum settings per grid, the defaults first; None means all."""
    seed_defaults: bool = False
    """Whether peers' defaults always get all seeds."""


QUICK = frozenset(
    {
        "llm-hour/heavy/4/60s/Random",
        "llm-hour/heavy/12/180s/LeastInFlight",
        "llm-hour/single/12/60s/Random",
        "llm-hour/medium/4/60s/Random",
        "llm-hour/vision/4/60s/Random",
        "servegen/heavy/4/60s/Random",
        "servegen-bursts/single/12/60s/LeastInFlight",
        "worldcup/single/12/60s/Random",
        "ramp/heavy/4/20s/Random",
        "ramp/single/12/180s/Random",
        "functions-all/single/12/60s/Random",
        "functions-http/heavy/4/60s/Random",
        "functions-queue/single/4/20s/LeastInFlight",
        "functions-spike/single/12/20s/Random",
        "step/heavy/4/60s/Random",
        "spikes/single/4/180s/Random",
    }
)
QUICK_SETTINGS, QUICK_SEEDS = 4, 1
SWEEP_SEED = 1
"""Fronts are found with this seed only, so that an interrupted second phase can continue."""


def matching(names: Iterable[str], pattern: str) -> tuple[str, ...]:
    """Return the names that match any of the patterns, which are separated by commas."""
    wanted = pattern.split(",")
    return tuple(name for name in names if any(fnmatchcase(name, each) for each in wanted))


def spread(settings: Sequence[Setting], count: int | None) -> tuple[Setting, ...]:
    """Return the defaults, which are first, and evenly spaced further settings: `count` in all.

    Worked: 14 settings, 4 wanted: 0, then of the 13 others those at 2, 6 and 10: 3, 7, 11.
    """
    if count is None or len(settings) <= count:
        return tuple(settings)
    others, wanted = settings[1:], count - 1
    picked = [others[(2 * index + 1) * len(others) // (2 * wanted)] for index in range(wanted)]
    return (settings[0], *picked)


def every(extent: Extent, grids: Grids) -> tuple[Job, ...]:
    """Return every possible run: all settings with all seeds."""
    jobs = [
        _job(cell, name, setting, seed)
        for cell in extent.cells
        for name in extent.autoscalers
        for setting in spread(grids.get(name, ({},)), extent.settings_each)
        for seed in range(1, extent.seeds + 1)
    ]
    return (*jobs, *_extras(extent))


def first(extent: Extent, grids: Grids) -> tuple[Job, ...]:
    """Return the runs of the first phase: autoscalers without a grid get all seeds."""
    jobs = [
        _job(cell, name, setting, seed)
        for cell in extent.cells
        for name in extent.autoscalers
        for setting in spread(grids.get(name, ({},)), extent.settings_each)
        for seed in range(1, (1 if name in grids else extent.seeds) + 1)
    ]
    return (*jobs, *_extras(extent))


def second(extent: Extent, grids: Grids, points: Sequence[Point]) -> tuple[Job, ...]:
    """Return the runs of the second phase, given the points of the sweep's seed."""
    jobs: dict[Job, None] = {}
    for cell in extent.cells:
        peers = [point for point in points if point.cell == cell and point.autoscaler in grids]
        defaults = [point for point in peers if extent.seed_defaults and not point.knobs]
        chosen = [*front(peers), *_beating(points, cell, peers), *defaults]
        for point in chosen:
            for seed in range(1, extent.seeds + 1):
                jobs[_job(cell, point.autoscaler, dict(point.knobs), seed)] = None
    return tuple(jobs)


def _beating(points: Sequence[Point], cell: str, peers: Sequence[Point]) -> list[Point]:
    """Return those of the peers' points that beat Headroom, by chance or not."""
    ours = [point for point in points if point.cell == cell and point.autoscaler == OURS]
    margins = [(peer, margin(peer, our)) for our in ours for peer in peers]
    return [peer for peer, its in margins if its is not None and its.beats]


def _extras(extent: Extent) -> list[Job]:
    seeds = range(1, extent.seeds + 1)
    return [_job(cell, OURS, {}, seed) for cell in extent.extras for seed in seeds]


def _job(cell: str, autoscaler: str, setting: Setting, seed: int) -> Job:
    return Job(cell=cell, autoscaler=autoscaler, knobs=tuple(sorted(setting.items())), seed=seed)
