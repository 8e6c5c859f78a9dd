"""Runs side by side in processes, or one after the other here; Ctrl-C keeps what was finished."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, MutableSequence, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from headroom.simulator.campaign import Perform, Run
from headroom.simulator.outcome import Outcome

_LOOK_EVERY_S = 0.25


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that ended: its outcomes, or why there are none."""

    run: Run
    outcomes: tuple[Outcome, ...] = ()
    error: Exception | None = None


@dataclass(slots=True)
class Study:
    """What came of all runs."""

    finished: list[Finished] = field(default_factory=list)
    """In the order of the runs, whatever order they ended in."""
    interrupted: bool = False

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Those of the runs that succeeded."""
        return tuple(outcome for each in self.finished for outcome in each.outcomes)

    @property
    def failures(self) -> tuple[Finished, ...]:
        """The runs that did not."""
        return tuple(each for each in self.finished if each.error is not None)


Watch = Callable[[Sequence[float], int], None]
"""Told the share of every run that is done, and how many have ended."""


def carry_out(runs: Sequence[Run], perform: Perform, *, jobs: int, watch: Watch) -> Study:
    """Carry out the runs on so many processes; one job stays in this one.

    `perform` is a function of a module, so that another process can import it. A run that raises is
    kept as a failure, and the others go on. KeyboardInterrupt ends the study early, never loses it.
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
        except Exception as error:  # noqa: BLE001  (one failed run must not lose the others)
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
        if pending:  # interrupted: nobody waits for what these would still find
            for worker in context.active_children():
                worker.terminate()


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
"""Of a worker process: where it says how far each run is."""


def _join(shares: MutableSequence[float]) -> None:
    """Begin a worker: the terminal's Ctrl-C reaches all processes, and only the first decides."""
    global _shares  # noqa: PLW0603  (a worker gets what cannot be sent with a task when it begins)
    _shares = shares
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work(index: int, run: Run, perform: Perform) -> tuple[Outcome, ...]:
    def note(share: float) -> None:
        _shares[index] = share

    return perform(run, note)
