"""`python -m decision_study family`: runs a set of the family and judges it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from decision_study import tables
from decision_study.family import asking, hard, members, performing, summary
from decision_study.family.loads import LOADS
from decision_study.family.members import DEVELOP, MEMBERS, Member
from decision_study.records import CLAIRVOYANT, IDEAL, OURS, Job
from headroom.simulator.autoscalers import catalogue

FOLDER = Path(__file__).parents[3] / ".decision_study"
RUNS = FOLDER / "family.jsonl"
HARD = "hard"
ASKS = (members.ALONE, *asking.KINDS)
YARDSTICKS: tuple[Job, ...] = tuple(
    Job(cell="", autoscaler=CLAIRVOYANT, knobs=knobs)
    for knobs in ((), (("window_s", 8.0),), (("window_s", 3.0),), (("window_s", 1.0),))
)
"""The clairvoyant at several windows: the cheapest that keeps the promise is the yardstick."""


def main(argv: Sequence[str]) -> int:
    """Run what is missing, print the tables, and return the exit status."""
    given = _parser().parse_args(argv)
    names = _names(given)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=200)
    knobs = tuple(sorted(given.headroom_knobs))
    ours = Job(cell="", autoscaler=OURS, knobs=knobs)
    wanted = [ours, *YARDSTICKS, Job(cell="", autoscaler=IDEAL)]
    jobs = [
        Job(cell=name, autoscaler=each.autoscaler, knobs=each.knobs, seed=members.SEED)
        for name in names
        for each in wanted
    ]
    done = performing.complete(jobs, RUNS, workers=given.jobs, console=console)
    cells = summary.cells_of(done.values(), ours.setting)
    if given.set == HARD:
        shown = [summary.hard(cells)]
    else:
        shown = [summary.classes(cells), summary.asking(cells), summary.worst(cells, given.worst)]
    for grid in shown:
        console.print(tables.for_terminal(grid))
    return 0


def _names(given: argparse.Namespace) -> list[str]:
    if given.set == HARD:
        return list(hard.ROWS)
    chosen = [m for m in MEMBERS.values() if m.set == given.set and _wanted(m, given)]
    return [m.name for m in chosen[: given.sample]]


def _wanted(member: Member, given: argparse.Namespace) -> bool:
    asked = given.clients is None or member.asks in given.clients
    return asked and (given.load is None or member.load in given.load)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="decision_study family",
        allow_abbrev=False,
        description="Run Headroom and the bounds in random workloads and judge the promise after "
        "the first hour. Finished runs are kept in .decision_study/family.jsonl.",
    )
    add = parser.add_argument
    add("--set", choices=(DEVELOP, HARD), default=DEVELOP, help="the set (develop)")
    add("--sample", type=int, metavar="N", help="only the first N; they are of all classes in turn")
    add("--class", dest="load", type=_loads, metavar="A,B", help=f"only {', '.join(LOADS)}")
    add("--clients", type=_clients, metavar="A,B", help=f"only {', '.join(ASKS)}")
    add("--headroom-knobs", type=_knobs, default=[], metavar="K=V,K=V", help="of the simulator")
    add("--worst", type=int, default=10, metavar="N", help="so many of the worst cells (10)")
    add("--jobs", "-j", type=int, default=min(2, os.cpu_count() or 1), help="worker processes")
    return parser


def _clients(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in ASKS:
            raise argparse.ArgumentTypeError(f"one of {', '.join(ASKS)}; got {name!r}")
    return names


def _loads(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in LOADS:
            raise argparse.ArgumentTypeError(f"one of {', '.join(LOADS)}; got {name!r}")
    return names


def _knobs(text: str) -> list[tuple[str, float]]:
    known = catalogue.entries()[OURS].knobs
    found = []
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in known:
            raise argparse.ArgumentTypeError(f"one of {', '.join(known)}; got {name!r}")
        found.append((name, float(value)))
    return found
