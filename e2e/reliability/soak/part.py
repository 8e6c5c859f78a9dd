"""The part `soak` of `make reliability`: one process for the hours, and its figures."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from bench.figures import Figure, at_most, shown
from cluster.commands import environment
from reliability.soak import soak_results

TITLE = "Hours of operator time under random faults"
TESTS = Path(__file__).parents[3] / "tests"
"""The API server, the pods and the clock are the tests' own."""
HOURS, SERVICES = 24.0, 2
RSS_GROWTH, OBJECT_GROWTH = 0.05, 0.02
CALLS_OF_A_SERVICE, CALLS_OF_A_PROCESS = 4400.0, 2700.0
"""An hour. Of a service: a tick of 2 s has two reads, so 3600; its children every 30 s, status, and
a look at everything by each of 60 new leaders. Of a process, however many services there are: the
list of services every 5 s, 720, and the lease, which is read and held every 2 s."""
PROCESSES = 2


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add how long and how many; the seed is that of the other parts."""
    add = parser.add_argument_group("soak").add_argument
    add("--hours", type=float, default=HOURS, help="hours of operator time (%(default)g)")
    add("--soak-services", type=int, default=SERVICES, help="number of services (%(default)s)")


def show(given: argparse.Namespace, console: Console) -> Sequence[Figure]:
    """Run it with a progress bar; the same seed gives the same again."""
    console.print(f"[dim]soak: seed {given.seed}[/dim]")
    words = (f"{given.hours:g}", str(given.seed), str(given.soak_services))
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "reliability.soak", *words],
        stdout=subprocess.PIPE,
        env=environment({"PYTHONPATH": str(TESTS)}),
        text=True,
    )
    assert process.stdout is not None
    with Progress(console=console) as progress, process:
        task = progress.add_task("hours", total=given.hours)
        for line in process.stdout:
            said = json.loads(line)
            if "count" in said:
                progress.update(task, completed=said["count"]["hour"])
            else:
                return figures(soak_results.read(said["results"]))
    raise RuntimeError(f"the soak ended with {process.returncode}, without output")


def calls_per_service_hour(services: int) -> float:
    """Return how many calls an hour of one of this many services may take; 7100 of two."""
    return CALLS_OF_A_SERVICE + PROCESSES * CALLS_OF_A_PROCESS / services


def figures(found: soak_results.SoakResults) -> Sequence[Figure]:
    """Compare what was counted with what is promised."""
    first, last = found.counts[0], found.counts[-1]
    calls = sorted(found.calls.items(), key=lambda item: -item[1])
    of_all = ", ".join(f"{verb} {number}" for verb, number in calls)
    return (
        shown("hours of operator time", f"{found.hours:g}"),
        shown(f"faults, killed leaders (seed {found.seed})", f"{found.troubles}, {found.kills}"),
        shown("evaluations", f"{found.ticks}"),
        at_most(
            "growth of memory, last quarter over second", found.grown("rss_mb"), RSS_GROWTH, "", 3
        ),
        at_most("growth of objects", found.grown("objects"), OBJECT_GROWTH, "", 3),
        at_most("growth of tasks", found.grown("tasks"), 0.0, "", 3),
        shown(
            "memory at the first and the last count", f"{first.rss_mb:.1f}, {last.rss_mb:.1f} MB"
        ),
        at_most(
            "API calls per service and hour",
            found.calls_per_service_hour,
            calls_per_service_hour(found.services),
            "",
            0,
        ),
        shown("API calls in total", of_all),
        at_most("out of bounds, missed, or unexpected", len(found.wrongs), 0, "", 0),
    )
