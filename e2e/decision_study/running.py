"""Performs runs in worker processes; delivers each record as soon as its run ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing.connection import wait as wait_for
from typing import TypeVar

from decision_study.cells import CELLS, PLANTS
from decision_study.faults_cells import EXTRAS
from decision_study.records import OURS, Job, Record, record_of
from decision_study.versions import version_of
from headroom.simulator.autoscalers import catalogue
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Scenario

Result = TypeVar("Result")
_LOOK_EVERY_S = 0.5
_CELLS = {cell.name: cell for cell in CELLS}


@cache
def scenario_of(cell: str) -> Scenario:
    """Return the scenario of a cell or case by name."""
    return (_CELLS[cell] if cell in _CELLS else EXTRAS[cell]).scenario()


def perform(job: Job) -> Record:
    """Perform one run."""
    scenario = scenario_of(job.cell)
    knobs: dict[str, float | str] = dict(job.knobs)
    began_s = time.monotonic()
    (outcome,) = simulate(
        scenario, lambda truth: catalogue.make(job.autoscaler, truth, knobs), job.seed
    )
    return record_of(
        job,
        outcome,
        version=version_of(job.autoscaler),
        wall_s=time.monotonic() - began_s,
        duration_s=scenario.duration_s,
        cold_start_s=scenario.workloads[0].spec.cold_start.median_s,
    )


def expected_s(job: Job, known: Mapping[tuple[str, str], float]) -> float:
    """Return the expected seconds of a run: as before, or from its requests and decisions."""
    before = known.get((job.cell, job.autoscaler))
    if before is not None:
        return before
    cell = _CELLS[job.cell] if job.cell in _CELLS else EXTRAS[job.cell].cell
    hours = 3.0
    requests = 0.65 * PLANTS[cell.plant].server.full_rps * cell.size * hours * 3600
    return 3.6e-7 * requests + hours * (1.9 if job.autoscaler == OURS else 0.1)


def carry_out(
    jobs: Sequence[Job],
    *,
    workers: int,
    perform: Callable[[Job], Result],
    finished: Callable[[Job, Result | Exception], None],
) -> None:
    """Perform the jobs in this order and deliver each record, or the error of its run.

    KeyboardInterrupt ends the workers and is raised to the caller.

    Raises:
        ChildProcessError: a worker ended abruptly, which ends all of them.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    pool = ProcessPoolExecutor(workers, context, _join)
    pending: dict[Future[Result], Job] = {}
    try:
        pending = {pool.submit(perform, job): job for job in jobs}
        while pending:
            ended, _ = wait(pending, _LOOK_EVERY_S, FIRST_COMPLETED)
            for future in ended:
                job, result = pending.pop(future), _result(future)
                finished(job, result)
    finally:
        pool.shutdown(wait=not pending, cancel_futures=True)
        if pending:  # interrupted: their results are not needed
            for worker in context.active_children():
                worker.terminate()


def _result(future: Future[Result]) -> Result | Exception:
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, BrokenProcessPool):
        raise ChildProcessError("a worker ended abruptly (out of memory?); try fewer --jobs")
    if isinstance(error, Exception):
        return error
    raise error


def _join() -> None:
    """Start a worker: it ignores Ctrl-C, and ends with the first process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    first = multiprocessing.parent_process()
    assert first is not None
    threading.Thread(target=_end_with, args=(first.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    """End this process when its parent has ended."""
    wait_for([sentinel])
    os._exit(1)
