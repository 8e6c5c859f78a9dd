"""Takes a snapshot of the cluster every second while a load runs, and shows it."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live

from cluster import ClusterError
from demo import load_job, plan
from demo.reader import Reader, UnreadableError
from demo.recording import Snapshot
from demo.scene import Show

LOOK_EVERY_S = 1.0
LINE_EVERY_S = 10.0
START_PATIENCE_S = 60.0
BLIND_LOOKS = 15
"""This many snapshots may fail in a row before the demo gives up."""


def watch(reading: Reader, show: Show, name: str, console: Console) -> None:
    """Take snapshots until the load's Job has ended.

    Raises:
        ClusterError: the load did not start, did not end in time, or nothing can be read.
    """
    title = show.title(name)
    if not console.is_terminal:
        console.print(title, soft_wrap=True)
        _watch_until_ended(reading, show, name, _Lines(console, show))
        return
    with Live(console=console, refresh_per_second=2, transient=True) as live:
        _watch_until_ended(
            reading,
            show,
            name,
            lambda snapshot: live.update(show.view(snapshot, title), refresh=False),
        )


class _Lines:
    """Prints a line now and then, where there is no terminal to draw on."""

    def __init__(self, console: Console, show: Show) -> None:
        self._console, self._show = console, show
        self._next_s = 0.0

    def __call__(self, snapshot: Snapshot) -> None:
        if snapshot.time_s >= self._next_s:
            self._next_s = snapshot.time_s + LINE_EVERY_S
            self._console.print(self._show.line(snapshot), soft_wrap=True, highlight=False)


def _watch_until_ended(
    reading: Reader, show: Show, name: str, present: Callable[[Snapshot], None]
) -> None:
    began_s, blind, run = time.monotonic(), 0, show.run
    while True:
        due_s = time.monotonic() + LOOK_EVERY_S
        try:
            run.snapshots.append(reading.snapshot(name))
            run.add_log(reading.log(plan.LOAD_JOB))
            present(run.snapshots[-1])
            ended, blind = reading.job_ended(plan.LOAD_JOB), 0
        except UnreadableError as error:
            ended, blind = False, blind + 1
            if blind >= BLIND_LOOKS:
                raise ClusterError(f"the cluster could not be read: {error}") from error
        if ended:
            break
        _check_time(show, time.monotonic() - began_s)
        time.sleep(max(0.0, due_s - time.monotonic()))
    run.add_log(reading.log(plan.LOAD_JOB, everything=True))
    run.snapshots.append(reading.snapshot(name))
    run.operator_restarts = reading.operator_restarts(plan.OPERATOR_NAMESPACE, plan.OPERATOR)


def _check_time(show: Show, passed_s: float) -> None:
    if not show.run.has_begun and passed_s > START_PATIENCE_S:
        raise ClusterError(f"the load did not start within {START_PATIENCE_S:g} s.")
    if passed_s > START_PATIENCE_S + show.scene.duration_s + load_job.ENDS_WITHIN_S:
        raise ClusterError("the load did not end in time.")
