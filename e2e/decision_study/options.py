"""Parses the command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from decision_study.cells import CELLS
from decision_study.faults_cells import EXTRAS, QUICK_EXTRAS
from decision_study.plan import QUICK, QUICK_SEEDS, QUICK_SETTINGS, Extent, matching
from decision_study.records import CLAIRVOYANT, IDEAL, OURS
from headroom.simulator.autoscalers import catalogue, sweep_grids


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The parsed command line."""

    extent: Extent
    jobs: int
    fresh: bool
    report_only: bool
    alone: bool
    """Whether `decide()` is timed, too: only for a complete study."""


def parsed(argv: Sequence[str] | None) -> Options:
    """Parse; exits with status 2 and the broken rule for invalid arguments."""
    parser = _parser()
    given = parser.parse_args(argv)
    cells, extras = [cell.name for cell in CELLS], list(EXTRAS)
    if given.quick:
        cells = [cell for cell in cells if cell in QUICK]
        extras = [extra for extra in extras if extra in QUICK_EXTRAS]
    if given.cells is not None:
        cells, extras = list(matching(cells, given.cells)), list(matching(extras, given.cells))
        if not cells and not extras:
            parser.error(f"no cell matches {given.cells!r}; cells.py names them")
    names = given.autoscalers or catalogue.names()
    if given.no_extras or OURS not in names:
        extras = []
    settings = QUICK_SETTINGS if given.quick else None
    extent = Extent(
        cells=tuple(cells),
        autoscalers=tuple(names),
        extras=tuple(extras),
        seeds=given.seeds or (QUICK_SEEDS if given.quick else 5),
        settings_each=1 if given.defaults_only else settings,
        seed_defaults=given.seed_defaults,
    )
    narrowed = given.cells is not None or given.autoscalers is not None
    return Options(
        extent=extent,
        jobs=given.jobs,
        fresh=given.fresh,
        report_only=given.report_only,
        alone=not (narrowed or given.no_extras),
    )


def grids(extent: Extent) -> Mapping[str, Sequence[Mapping[str, float]]]:
    """Return the grids of the peers that take part."""
    return {name: grid for name, grid in sweep_grids.GRIDS.items() if name in extent.autoscalers}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="decision_study",
        allow_abbrev=False,
        description="Run Headroom and its peers in all cells and judge the promises. Finished runs "
        "are kept in .decision_study/ and reused while their versions are unchanged.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="16 cells, 4 settings a peer, 1 seed: up to 10 min")
    add("--cells", metavar="PATTERN", help="only matching cells, e.g. 'ramp/heavy/*,step/*'")
    add("--autoscalers", type=_names, metavar="A,B", help="only these, and the bounds")
    add("--seeds", type=_positive, metavar="N", help="seeds 1 to N (5; quick: 1)")
    add("--defaults-only", action="store_true", help="peers at their defaults, no sweep")
    add("--seed-defaults", action="store_true", help="all seeds for peers' defaults, too: +20 min")
    add("--no-extras", action="store_true", help="without wrong claims, faults, cost of decide()")
    add("--jobs", "-j", type=_positive, default=_cores(), metavar="N", help="worker processes")
    add("--fresh", action="store_true", help="discard finished runs")
    add("--report-only", action="store_true", help="report finished runs, run nothing")
    return parser


def _names(text: str) -> tuple[str, ...]:
    known = catalogue.names()
    names = text.split(",")
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"must be one of {', '.join(known)}; got {name!r}")
    bounds = [name for name in (CLAIRVOYANT, IDEAL) if name not in names]
    return tuple(dict.fromkeys((*names, *bounds)))


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1; got {text!r}")
    return int(text)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
