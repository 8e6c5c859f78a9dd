"""Host work in parallel with the device: stages the next batch and finishes the last one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Queue, SimpleQueue
from typing import Generic, TypeVar

from headroom_server.device.batches import ComputedBatch
from headroom_server.device.execution import Executor
from headroom_server.device.isolation import Failure
from headroom_server.device.lookahead import Lookahead
from headroom_server.device.warming import WarmShape
from headroom_server.engine import StageTimes
from headroom_server.scheduling.entries import SealedBatch

T = TypeVar("T")

PAYS_FROM_S = 0.0005
PAYS_FROM_SHARE = 0.03
"""Less host work than both limits is done by the device's thread: handing a batch to another thread
and back costs about 0.1 ms, and CPU."""


def pays(stages: StageTimes) -> bool:
    """Return whether a batch like this benefits from threads for its host work."""
    host_s = stages.preprocess_s + stages.stage_s + stages.postprocess_s
    return host_s >= max(PAYS_FROM_S, PAYS_FROM_SHARE * stages.execute_s)


def pays_mostly(shapes: Sequence[WarmShape]) -> bool:
    """Return whether most of the larger batches of a warm-up benefit."""
    half = max(shape.items for shape in shapes) / 2
    gains = [pays(one) for shape in shapes if shape.items >= half for one in shape.later]
    return 2 * sum(gains) > len(gains)


class Finisher(Generic[T]):
    """A thread that splits the results of the last batch by request.

    `verdict` is called with every batch and its failure. One batch may wait: if finishing takes
    longer than computing, the device waits as well.
    """

    def __init__(
        self,
        executor: Executor[T],
        *,
        verdict: Callable[[SealedBatch[T], Failure | None], None],
        clock: Callable[[], float],
    ) -> None:
        self._executor = executor
        self._verdict = verdict
        self._clock = clock
        self._jobs: Queue[ComputedBatch[T] | None] = Queue(maxsize=1)
        self.busy_since_s: float | None = None
        """Time when finishing of the current batch began."""
        self._thread = threading.Thread(target=self._run, name="finisher", daemon=True)
        self._thread.start()

    def put(self, done: ComputedBatch[T]) -> None:
        """Finish this batch; wait if another one is already waiting."""
        self._jobs.put(done)

    def rest(self) -> None:
        """Wait until everything is finished."""
        self._jobs.join()

    def stop(self) -> None:
        """End the thread after its pending batches, and wait for it."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (done := self._jobs.get()) is not None:
            self.busy_since_s = self._clock()
            self._verdict(done.sealed, self._executor.conclude(done, apart=True))
            self.busy_since_s = None
            self._jobs.task_done()


class Pipeline(Generic[T]):
    """Stages, computes and finishes one batch each at a time. `wake` wakes the device's thread."""

    def __init__(
        self,
        executor: Executor[T],
        *,
        peek: Callable[[], SealedBatch[T]],
        full: int,
        clock: Callable[[], float],
        wake: Callable[[], None],
    ) -> None:
        self._executor = executor
        self._wake = wake
        self._verdicts: SimpleQueue[tuple[SealedBatch[T], Failure | None]] = SimpleQueue()
        self._lookahead = Lookahead(executor, peek=peek, full=full, clock=clock)
        self._finisher = Finisher(executor, verdict=self._ended, clock=clock)

    def on_queued(self) -> None:
        """Notify of a queued request."""
        self._lookahead.wake()

    @property
    def busy_since_s(self) -> float | None:
        """Begin of the finishing of the current batch; None between batches."""
        return self._finisher.busy_since_s

    def execute(self, sealed: SealedBatch[T]) -> None:
        """Compute a batch, and process the results of earlier ones."""
        if not self._executor.fits(sealed):
            self.alone()
            self._executor.run(sealed)
            return
        ahead = self._lookahead.close()
        computed = self._executor.compute(sealed, ahead, started=self._lookahead.open)
        if isinstance(computed, Failure):
            self.alone()
            self._executor.judge(sealed, computed)
        else:
            self._finisher.put(computed)
        self.settle()

    def settle(self) -> None:
        """Process the results of finished batches; isolate failures."""
        while not self._verdicts.empty():
            sealed, failure = self._verdicts.get()
            if failure is not None:
                self.alone()
            self._executor.judge(sealed, failure)

    def alone(self) -> None:
        """Let both threads finish, so that this thread can use all steps of the engine."""
        self._lookahead.close()
        self._finisher.rest()

    def stop(self) -> None:
        """End both threads."""
        self._lookahead.stop()
        self._finisher.stop()

    def _ended(self, sealed: SealedBatch[T], failure: Failure | None) -> None:
        self._verdicts.put((sealed, failure))
        if failure is not None:
            self._wake()
