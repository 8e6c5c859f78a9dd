"""Executes batches on the engine in three steps, and isolates failures.

Every batch is reported once, with the result of each of its requests. Everything but `conclude`
runs on the device's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from headroom_server.device.batches import (
    UNPREPARED,
    ComputedBatch,
    ExecutedBatch,
    Outputs,
    StagedAhead,
)
from headroom_server.device.health import EngineHealth
from headroom_server.device.isolation import Failure, isolate, portions
from headroom_server.device.pieces import Pieces
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
from headroom_server.signature import Signature

log = logging.getLogger("headroom_server")

T = TypeVar("T")


class Executor(Generic[T]):
    """Executes batches on the engine; `report` gets each of them once."""

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
        self.health = EngineHealth(engine, signature, max_batch_size)
        self.busy_since_s: float | None = None
        """Time when the current batch began; None between batches."""

    def fits(self, sealed: SealedBatch[T]) -> bool:
        """Return whether a batch is executed as a whole: always, unless memory is short."""
        return self.health.fits(sealed.items, sealed.length)

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
            self.busy_since_s = None  # before the result is reported
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
        if failure is not None:
            self._salvage(sealed, [(sealed, failure)])
        else:
            self.health.learn(sealed.items, sealed.length, None)

    def _salvage(
        self, sealed: SealedBatch[T], parts: Sequence[tuple[SealedBatch[T], Failure | None]]
    ) -> None:
        """Answer as many requests as possible. A part without a failure was not tried yet."""
        began_s = self._clock()
        pieces: Pieces[T] = Pieces({}, set(), set(), [])
        for part, failure in parts:
            if failure is not None:
                self._learn(part, failure, pieces)
            elif self._piece(part, pieces) is None:
                continue
            self._narrow(part, pieces)
        for part in pieces.too_large():
            self.health.learn(part.items, part.length, Failure.MEMORY)
        batch = tuple(entry for entry in sealed.batch if entry.key not in pieces.late)
        late = tuple(entry for entry in sealed.batch if entry.key in pieces.late)
        outputs = [pieces.outputs.get(entry.key) for entry in batch]
        log.error("%d of %d requests of a batch failed", outputs.count(None), len(batch))
        seconds = self._clock() - began_s
        self.busy_since_s = None
        self._report(
            ExecutedBatch(sealed._replace(batch=batch, expired=late), outputs, began_s, seconds)
        )

    def _narrow(self, sealed: SealedBatch[T], pieces: Pieces[T]) -> None:
        steps, outcome = isolate(sealed.batch), None
        with suppress(StopIteration):
            while self.health.works():
                outcome = self._piece(_part(sealed, steps.send(outcome)), pieces)

    def _piece(self, sealed: SealedBatch[T], pieces: Pieces[T]) -> Failure | None:
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
        self._learn(sealed, failure, pieces)
        if not isinstance(outputs, Failure):
            for entry, answer in zip(sealed.batch, outputs, strict=True):
                pieces.outputs[entry.key] = answer
        return failure

    def _learn(self, part: SealedBatch[T], failure: Failure | None, pieces: Pieces[T]) -> None:
        """Learn from a part; a lack of memory is judged once the cause is isolated.

        What one request needs says nothing about the size of other batches: it counts as an error.
        """
        if failure is not None and len(part.batch) == 1:
            pieces.alone.add(part.batch[0].key)
            failure = Failure.ERROR
        if failure is Failure.MEMORY:
            pieces.short.append(part)
        else:
            self.health.learn(part.items, part.length, failure)

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
        runs = portions(sizes, self.health.budget.items(sealed.length))
        return [_part(sealed, sealed.batch[run]) for run in runs]


def _part(sealed: SealedBatch[T], entries: Sequence[QueueEntry[T]]) -> SealedBatch[T]:
    return sealed._replace(batch=tuple(entries), expired=())
