"""`python -m decision_study family`: runs a set of the family and judges it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import RenderableType

import looks
import terminal
from bench.figures import Figure, all_hold, table
from decision_study import tables
from decision_study.family import (
    cell_results,
    client_draws,
    hard,
    kept,
    members,
    peers,
    performing,
    summary,
    verdicts,
)
from decision_study.family.kept import Kept
from decision_study.family.loads import LOADS
from decision_study.family.members import DEVELOP, JUDGE, MEMBERS, Member
from decision_study.records import CLAIRVOYANT, IDEAL, OURS, Job
from decision_study.tables import Grid
from headroom.simulator.autoscalers import catalogue
from headroom.simulator.report.write import write_atomically

FOLDER = Path(__file__).parents[3] / ".decision_study"
RUNS = "family.jsonl"
LOOKS = Path(__file__).parent / "looks.jsonl"
HARD = "hard"
ASKS = (members.ALONE, *client_draws.KINDS)
WIDTH_WITHOUT_TERMINAL = 200
BOUNDS: tuple[Job, ...] = (
    *(
        Job(cell="", autoscaler=CLAIRVOYANT, knobs=knobs)
        for knobs in ((), (("window_s", 8.0),), (("window_s", 3.0),), (("window_s", 1.0),))
    ),
    *(Job(cell="", autoscaler=IDEAL, knobs=knobs) for knobs in ((), (("trailing_s", 2.0),))),
)
"""The bounds see arrivals at several windows: `verdicts` says which one counts in a cell."""
HELD, FAILED, INTERRUPTED = 0, 1, 130


def main(argv: Sequence[str], folder: Path = FOLDER, record: Path = LOOKS) -> int:
    """Run what is missing, print the tables; 0 if every figure holds, else 1."""
    given = _parser().parse_args(argv)
    console = terminal.console(width_without_terminal=WIDTH_WITHOUT_TERMINAL)
    names = _names(given)
    ours = Job(cell="", autoscaler=OURS, knobs=tuple(sorted(given.headroom_knobs)))
    jobs = _jobs(names, ours, given.peers)
    try:
        if given.report_only:
            done = kept.current(kept.load(folder / RUNS), jobs)
        else:
            done = performing.complete(jobs, folder / RUNS, workers=given.jobs, console=console)
    except KeyboardInterrupt:
        console.print("Interrupted: finished runs are kept; run again to continue.")
        return INTERRUPTED
    if given.set == JUDGE and given.look is None:
        console.print("The results of judge are kept and not shown; --look REASON shows them.")
        return HELD
    if given.set == JUDGE:
        times = looks.note(record, given.look, len(names))
        console.print(f"Look {times} at judge; commit {record.name}, which records it.")
    figures, grids = _judged(list(done.values()), ours.setting, given)
    shown: list[RenderableType] = [tables.for_terminal(grid) for grid in grids]
    for each in (*shown, table(f"Goals, on {given.set}", figures)):
        console.print(each)
    _write(folder / f"family-{given.set}.md", figures, grids)
    return HELD if all_hold(figures) else FAILED


def _jobs(names: Sequence[str], ours: Job, with_peers: int) -> list[Job]:
    """Return all runs; the peers' settings only in the first cells."""
    found = []
    for number, name in enumerate(names):
        found += [
            Job(cell=name, autoscaler=each.autoscaler, knobs=each.knobs, seed=members.SEED)
            for each in (ours, *BOUNDS)
        ]
        found += peers.jobs(name, members.SEED) if number < with_peers else []
    return found


def _judged(
    records: Sequence[Kept], ours: str, given: argparse.Namespace
) -> tuple[tuple[Figure, ...], list[Grid]]:
    """Return the figures and the tables of these runs."""
    cells = cell_results.cells_of(records, ours)
    if given.set == HARD:
        return verdicts.hard_figures(cells, hard.PROMISED), [summary.hard(cells)]
    rivals = verdicts.rivals_of(records, OURS)
    grids = [summary.classes(cells), summary.asking(cells)]
    if rivals:
        grids.append(summary.settings(verdicts.singles(cells, rivals)))
    grids.append(summary.worst(cells, given.worst, performing.description_of))
    return verdicts.figures(cells, rivals), grids


def _write(path: Path, figures: Sequence[Figure], grids: Sequence[Grid]) -> None:
    parts = [tables.promises(figures), *grids]
    write_atomically(path, "\n".join(map(tables.as_markdown, parts)))


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
        "the first hour. Finished runs are kept in .decision_study/family.jsonl; those of Headroom "
        "while the sources of its decision are unchanged.",
    )
    add = parser.add_argument
    add("--set", choices=(DEVELOP, JUDGE, HARD), default=DEVELOP, help="the set (develop)")
    add(
        "--peers",
        type=int,
        nargs="?",
        const=len(MEMBERS),
        default=0,
        metavar="N",
        help="with the peers' settings, for figures 3 and 4; in the first N cells only",
    )
    add("--look", metavar="REASON", help="show the results of judge, and record that and why")
    add("--sample", type=int, metavar="N", help="only the first N; they are of all classes in turn")
    add("--class", dest="load", type=_of(tuple(LOADS)), metavar="A,B", help=", ".join(LOADS))
    add("--clients", type=_of(ASKS), metavar="A,B", help=", ".join(ASKS))
    add("--headroom-knobs", type=_knobs, default=[], metavar="K=V,K=V", help="of the simulator")
    add("--worst", type=int, default=10, metavar="N", help="so many of the worst cells (10)")
    add("--jobs", "-j", type=int, default=2, metavar="N", help="worker processes (2)")
    add("--report-only", action="store_true", help="report finished runs, run nothing")
    return parser


def _of(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """Return the parser of names that are separated by commas, all of them known."""

    def parse(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"must be one of {', '.join(known)}; got {name!r}")
        return names

    return parse


def _knobs(text: str) -> list[tuple[str, float]]:
    known = catalogue.entries()[OURS].knobs
    found = []
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in known:
            raise argparse.ArgumentTypeError(f"must be one of {', '.join(known)}; got {name!r}")
        found.append((name, float(value)))
    return found
