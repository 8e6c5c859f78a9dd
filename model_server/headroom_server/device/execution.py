"""Executes batches on the engine in three steps, and isolates failures.

Every batch is reported once, with the result of each of its requests. Everything but `conclude`
runs on the device's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

from headroom_server.device.isolation import Budget, Failure, FailureStreak, isolate, portions
from headroom_server.device.warming import execute, synthetic
from headroom_server.engine import (
    DeviceLostError,
    Engine,
    OutOfMemoryError,
    Staged,
    StageTimes,
    Work,
    check_outputs,
)
from headroom_server.scheduling.entries import QueueEntry, SealedBatch
from headroom_server.tensors import Numbers, Signature

log = logging.getLogger("headroom_server")

Outputs = Mapping[str, Numbers]
T = TypeVar("T")


class ExecutedBatch(NamedTuple, Generic[T]):
    """One executed batch; `outputs` has None for each request that failed."""

    sealed: SealedBatch[T]
    outputs: Sequence[Outputs | None]
    began_s: float
    seconds: float
    """How long the next batch had to wait for this one."""
    stages: StageTimes | None = None
    """None if it was executed in parts, and therefore took longer."""
    apart: bool = False
    """Whether postprocessing came after these seconds, on another thread."""


class StagedAhead(NamedTuple):
    """What was staged ahead for the expected batch, and how long that took."""

    staged: Staged | None = None
    seconds: float = 0.0


UNPREPARED = StagedAhead()


class ComputedBatch(NamedTuple, Generic[T]):
    """A batch whose results are in host memory."""

    sealed: SealedBatch[T]
    staged: Staged
    result: Any
    began_s: float
    stage_s: float
    execute_s: float


class Pieces(NamedTuple):
    """Results by request key, of a batch that is executed in parts."""

    outputs: dict[int, Outputs]
    late: set[int]


class Executor(Generic[T]):
    """The engine, its recent failures, and its memory budget."""

    def __init__(
        self,
        engine: Engine,
        signature: Signature,
        *,
        max_batch_size: int,
        work_of: Callable[[T], Work],
        clock: Callable[[], float],
        report: Callable[[ExecutedBatch[T]], None],
    ) -> None:
        self._engine = engine
        self._signature = signature
        self._work_of = work_of
        self._clock = clock
        self._report = report
        self.budget = Budget.of(max_batch_size * max((1, *signature.lengths)))
        self.failure_streak = FailureStreak()
        self.busy_since_s: float | None = None
        """When the current batch began; None between batches."""
        self.suspected = False
        """The engine failed even the request that succeeded in warm-up, and every one since."""

    def fits(self, sealed: SealedBatch[T]) -> bool:
        """Return whether a batch is executed as a whole: always, unless memory is short."""
        return self.budget.share == 1.0 or sealed.items <= self.budget.items(sealed.length)

    def stage(self, sealed: SealedBatch[T], ahead: Staged | None = None) -> Staged:
        """Run the engine's first step. May raise any exception."""
        works = list(map(self._work_of, [entry.payload for entry in sealed.batch]))
        return self._engine.stage(works, sealed.length, ahead)

    def compute(
        self,
        sealed: SealedBatch[T],
        ahead: StagedAhead = UNPREPARED,
        started: Callable[[], None] | None = None,
    ) -> ComputedBatch[T] | Failure:
        """Run the first two steps; `started` is called between them.

        Raises:
            DeviceLostError: raised by the engine.
        """
        self.busy_since_s = began_s = self._clock()
        try:
            staged = self.stage(sealed, ahead.staged)
            staged_s = self._clock()
            if started is not None:
                started()
            result = self._engine.execute(staged)
        except DeviceLostError:
            raise
        except OutOfMemoryError as error:
            log.warning("out of memory for a batch of %d items: %s", sealed.items, error)
            return Failure.MEMORY
        except Exception:  # what fails is narrowed down, the server goes on
            log.exception("a batch of %d items failed", sealed.items)
            return Failure.ERROR
        stage_s = max(0.0, staged_s - began_s + ahead.seconds - staged.preprocess_s)
        return ComputedBatch(sealed, staged, result, began_s, stage_s, self._clock() - staged_s)

    def conclude(self, done: ComputedBatch[T], *, apart: bool = False) -> Failure | None:
        """Run the last step; report the batch if it succeeds.

        `apart`: on a separate thread, so that no batch waits for it.
        """
        began_s = self._clock()
        outputs = self._finished(done)
        if isinstance(outputs, Failure):
            return outputs
        ended_s = self._clock()
        stages = StageTimes(
            done.staged.preprocess_s, done.stage_s, done.execute_s, ended_s - began_s
        )
        seconds = (began_s if apart else ended_s) - done.began_s
        if not apart:
            self.busy_since_s = None  # before anybody hears of it
        self._report(ExecutedBatch(done.sealed, outputs, done.began_s, seconds, stages, apart))
        return None

    def run(self, sealed: SealedBatch[T]) -> None:
        """Run all three steps and report; in parts if memory is short.

        Raises:
            DeviceLostError: raised by the engine.
        """
        if self.fits(sealed):
            computed = self.compute(sealed)
            failed = computed if isinstance(computed, Failure) else self.conclude(computed)
            self.judge(sealed, failed)
        else:
            self._salvage(sealed, [(part, None) for part in self._portions(sealed)])

    def judge(self, sealed: SealedBatch[T], failure: Failure | None) -> None:
        """Learn from a batch's result; if it failed, execute it in parts and report."""
        self._learn(sealed, failure)
        if failure is not None:
            self._salvage(sealed, [(sealed, failure)])

    def probe(self) -> bool:
        """Execute the request that succeeded in warm-up; return whether it still does."""
        length = self._signature.lengths[0] if self._signature.lengths else 0
        try:
            execute(self._engine, self._signature, synthetic(self._signature, 1, length))
        except DeviceLostError:
            raise
        except Exception:
            log.exception("the engine fails the request that succeeded in warm-up")
            self.suspected = True
        else:
            self.suspected = False
            self.failure_streak = FailureStreak()
        return not self.suspected

    def _salvage(
        self, sealed: SealedBatch[T], parts: Sequence[tuple[SealedBatch[T], Failure | None]]
    ) -> None:
        """Answer as many requests as possible. A part without a failure was not tried yet."""
        began_s = self._clock()
        pieces = Pieces({}, set())
        for part, failure in parts:
            outcome = self._piece(part, pieces) if failure is None else failure
            if outcome is not None:
                self._narrow(part, outcome, pieces)
        batch = tuple(entry for entry in sealed.batch if entry.key not in pieces.late)
        late = tuple(entry for entry in sealed.batch if entry.key in pieces.late)
        outputs = [pieces.outputs.get(entry.key) for entry in batch]
        log.error("%d of %d requests of a batch failed", outputs.count(None), len(batch))
        seconds = self._clock() - began_s
        self.busy_since_s = None
        self._report(
            ExecutedBatch(sealed._replace(batch=batch, expired=late), outputs, began_s, seconds)
        )

    def _narrow(self, sealed: SealedBatch[T], failure: Failure, pieces: Pieces) -> None:
        steps, outcome = isolate(sealed.batch, failure), None
        with suppress(StopIteration):
            while not (self.suspected or (self.failure_streak.due and not self.probe())):
                outcome = self._piece(_part(sealed, steps.send(outcome)), pieces)

    def _piece(self, sealed: SealedBatch[T], pieces: Pieces) -> Failure | None:
        now_s = self._clock()
        late = {entry.key for entry in sealed.batch if entry.due_s <= now_s}
        pieces.late.update(late)
        if late:
            sealed = _part(sealed, [entry for entry in sealed.batch if entry.key not in late])
        if not sealed.batch:
            return None
        computed = self.compute(sealed)
        outputs = computed if isinstance(computed, Failure) else self._finished(computed)
        failure = outputs if isinstance(outputs, Failure) else None
        self._learn(sealed, failure)
        if not isinstance(outputs, Failure):
            for entry, answer in zip(sealed.batch, outputs, strict=True):
                pieces.outputs[entry.key] = answer
        return failure

    def _finished(self, done: ComputedBatch[T]) -> Sequence[Outputs] | Failure:
        try:
            outputs = self._engine.finish(done.staged, done.result)
            check_outputs(self._signature, done.staged.batch, outputs)
        except Exception:  # also a lost device: the batch is tried again, where that will show
            log.exception("a batch of %d items failed at its end", done.sealed.items)
            return Failure.ERROR
        return outputs

    def _portions(self, sealed: SealedBatch[T]) -> list[SealedBatch[T]]:
        sizes = [entry.items for entry in sealed.batch]
        runs = portions(sizes, self.budget.items(sealed.length))
        return [_part(sealed, sealed.batch[run]) for run in runs]

    def _learn(self, sealed: SealedBatch[T], failure: Failure | None) -> None:
        self.failure_streak = self.failure_streak.after(failure)
        if failure is None:
            self.suspected = False
        if failure is not None or self.budget.share < 1.0:
            cells = sealed.items * max(1, sealed.length)
            self.budget = self.budget.after(cells, failure)


def _part(sealed: SealedBatch[T], entries: Sequence[QueueEntry[T]]) -> SealedBatch[T]:
    return sealed._replace(batch=tuple(entries), expired=())
