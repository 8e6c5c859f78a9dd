"""Runs in parallel processes, or one after another in this one; Ctrl-C keeps finished runs."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker

from headroom.simulator.campaign import Perform, Run
from headroom.simulator.outcome import Outcome

_LOOK_EVERY_S = 0.25


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished run: its outcomes, or its error."""

    run: Run
    outcomes: tuple[Outcome, ...] = ()
    error: Exception | None = None


@dataclass(slots=True)
class Study:
    """The results of all runs."""

    finished: list[Finished] = field(default_factory=list)
    """In the order of the runs."""
    interrupted: bool = False

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Return the outcomes of the runs that succeeded."""
        return tuple(outcome for each in self.finished for outcome in each.outcomes)

    @property
    def failures(self) -> tuple[Finished, ...]:
        """Return the runs that failed."""
        return tuple(each for each in self.finished if each.error is not None)


Watch = Callable[[Sequence[float], int], None]
"""Gets the completed share of each run, and the number of finished runs."""


def carry_out(runs: Sequence[Run], perform: Perform, *, jobs: int, watch: Watch) -> Study:
    """Execute the runs in this many processes; one job stays in this process.

    `perform` is a function of a module, so that another process can import it. A run that raises is
    a failure, and the rest go on. KeyboardInterrupt ends the study and keeps the finished runs.
    """
    found: dict[int, Finished] = {}
    try:
        if jobs == 1:
            _here(runs, perform, watch, found)
        else:
            _side_by_side(runs, perform, jobs, watch, found)
    except KeyboardInterrupt:
        return Study([found[index] for index in sorted(found)], interrupted=True)
    return Study([found[index] for index in sorted(found)])


def _here(runs: Sequence[Run], perform: Perform, watch: Watch, found: dict[int, Finished]) -> None:
    shares = [0.0] * len(runs)
    for index, run in enumerate(runs):

        def note(share: float, index: int = index) -> None:
            shares[index] = share
            watch(shares, len(found))

        note(0.0)
        try:
            found[index] = Finished(run, perform(run, note))
        except Exception as error:  # noqa: BLE001  (one failed run must not lose the rest)
            found[index] = Finished(run, error=error)
        note(1.0)


def _side_by_side(
    runs: Sequence[Run], perform: Perform, jobs: int, watch: Watch, found: dict[int, Finished]
) -> None:
    # Forked from a process that has the simulator loaded and no thread of its own.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["headroom.simulator.campaign"])
    shares = context.Array("d", len(runs), lock=False)
    pool = ProcessPoolExecutor(jobs, context, _join, (shares,))
    pending: dict[Future[tuple[Outcome, ...]], int] = {}
    try:
        with _interrupts_wait():
            pending = {pool.submit(_work, i, run, perform): i for i, run in enumerate(runs)}
        while pending:
            ended, _ = wait(pending, _LOOK_EVERY_S, FIRST_COMPLETED)
            for future in ended:
                index = pending.pop(future)
                found[index] = _ended(runs[index], future)
                shares[index] = 1.0
            watch(shares[:], len(found))
    finally:
        pool.shutdown(wait=not pending, cancel_futures=True)
        if pending:  # interrupted: their results are not used
            for worker in context.active_children():
                worker.terminate()


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Start workers with SIGINT blocked, which they inherit: only this process handles Ctrl-C.

    Here it waits until all have started, so that all can be ended.
    """
    came: list[int] = []
    resource_tracker.ensure_running()  # it unblocks SIGINT
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handler = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if came:
        raise KeyboardInterrupt


def _ended(run: Run, future: Future[tuple[Outcome, ...]]) -> Finished:
    error = future.exception()
    if error is None:
        return Finished(run, future.result())
    if isinstance(error, BrokenProcessPool):
        error = ChildProcessError("a worker ended abruptly (out of memory?); try fewer --jobs")
    if isinstance(error, Exception):
        return Finished(run, error=error)
    raise error


_shares: MutableSequence[float] = []
"""Completed share of each run, in a worker process."""


def _join(shares: MutableSequence[float]) -> None:
    """Initialize a worker."""
    global _shares  # noqa: PLW0603  (shared memory cannot be sent with a task)
    _shares = shares


def _work(index: int, run: Run, perform: Perform) -> tuple[Outcome, ...]:
    def note(share: float) -> None:
        _shares[index] = share

    return perform(run, note)
