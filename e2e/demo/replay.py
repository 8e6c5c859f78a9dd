"""The replay: starts the load generator as a Job, looks every second, shows what it sees."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live

from cluster import Cluster, ClusterError
from demo import load_job, plan, table
from demo.plan import Plan
from demo.reader import Reader, UnreadableError
from demo.recording import Look, Recording
from load import arrivals, traces

LOOK_EVERY_S = 1.0
LINE_EVERY_S = 10.0
START_PATIENCE_S = 60.0
BLIND_LOOKS = 15
"""So many looks may fail in a row before the demo gives up."""


def start_load(target: Cluster, reading: Reader, name: str, wanted: Plan) -> None:
    """Put trace and generator into the cluster."""
    service = reading.service()
    arrivals.arrivals(traces.load(plan.TRACE), wanted.replay)  # a bad window fails here, not there
    job = load_job.job(
        plan.LOAD_JOB,
        image=plan.LOAD_IMAGE,
        url=reading.address(),
        model=name,
        target_s=service.target_s,
        replay=wanted.replay,
    )
    scope = {"namespace": plan.NAMESPACE}
    for manifest in (load_job.config_map(plan.LOAD_JOB, plan.TRACE.read_bytes()), job):
        target.apply({**manifest, "metadata": {**manifest["metadata"], **scope}})


def watch(reading: Reader, name: str, wanted: Plan, console: Console) -> Recording:
    """Look until the generator's Job has ended.

    Raises:
        ClusterError: the generator did not start, did not end in time, or nothing can be read.
    """
    recording, title = Recording(), _title(name, wanted)
    if not console.is_terminal:
        console.print(title)
        _look_until_ended(reading, name, wanted, recording, _Lines(console, recording))
        return recording
    with Live(console=console, refresh_per_second=2, transient=True) as live:
        _look_until_ended(
            reading,
            name,
            wanted,
            recording,
            lambda look: live.update(table.view(look, recording, title)),
        )
    return recording


class _Lines:
    """Prints a line now and then, where there is no terminal to draw on."""

    def __init__(self, console: Console, recording: Recording) -> None:
        self._console, self._recording = console, recording
        self._next_s = 0.0

    def __call__(self, look: Look) -> None:
        if look.time_s >= self._next_s:
            self._next_s = look.time_s + LINE_EVERY_S
            self._console.print(table.line(look, self._recording), soft_wrap=True, highlight=False)


def _look_until_ended(
    reading: Reader,
    name: str,
    wanted: Plan,
    recording: Recording,
    show: Callable[[Look], None],
) -> None:
    began_s, blind = time.monotonic(), 0
    while True:
        due_s = time.monotonic() + LOOK_EVERY_S
        try:
            recording.looks.append(reading.look(name))
            recording.hear(reading.said(plan.LOAD_JOB))
            show(recording.looks[-1])
            ended, blind = reading.job_ended(plan.LOAD_JOB), 0
        except UnreadableError as error:
            ended, blind = False, blind + 1
            if blind >= BLIND_LOOKS:
                raise ClusterError(f"the cluster could not be read: {error}") from error
        if ended:
            break
        _check_time(recording, wanted, time.monotonic() - began_s)
        time.sleep(max(0.0, due_s - time.monotonic()))
    recording.hear(reading.said(plan.LOAD_JOB, everything=True))
    recording.looks.append(reading.look(name))
    recording.operator_restarts = reading.operator_restarts(plan.OPERATOR_NAMESPACE, plan.OPERATOR)


def _check_time(recording: Recording, wanted: Plan, passed_s: float) -> None:
    if recording.started is None and passed_s > START_PATIENCE_S:
        raise ClusterError(f"the load generator did not start within {START_PATIENCE_S:g} s.")
    if passed_s > START_PATIENCE_S + wanted.duration_s + load_job.ENDS_WITHIN_S:
        raise ClusterError("the load generator did not end in time.")


def _title(name: str, wanted: Plan) -> str:
    return (
        f"{name}: {wanted.duration_s:g} s of a recorded workload in real time, open-loop "
        f"({plan.TRACE_TITLE}, times {plan.SCALE:g})"
    )
