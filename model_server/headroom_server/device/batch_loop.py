"""The loop of a warm device: take a batch, execute it, report it; wait only if nothing waits.

It takes each batch the moment the previous one ends, without a detour over the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, NamedTuple, TypeVar

from headroom_server.device.batches import ExecutedBatch
from headroom_server.device.execution import Executor
from headroom_server.device.listener import Listener
from headroom_server.device.pipeline import Pipeline, pays_mostly
from headroom_server.device.startup import Warm
from headroom_server.engine import DeviceLostError, Engine, Work
from headroom_server.scheduling.entries import SealedBatch

log = logging.getLogger("headroom_server")

T = TypeVar("T")

PROBE_PAUSE_S = 1.0
SUSPICION_S = 30.0
"""An engine that fails every batch is not ready; after this time only a restart may help."""


class BatchSource(NamedTuple, Generic[T]):
    """Source of a device's batches."""

    take: Callable[[], SealedBatch[T]]
    """Returns the next batch; called when the device is free."""
    peek: Callable[[], SealedBatch[T]]
    """Returns what `take` would give now."""
    waits: Callable[[], bool]
    """Whether any request waits for a batch."""
    work_of: Callable[[T], Work]


class BatchLoop(Generic[T]):
    """Executes on a warm engine. `post` calls a function on the listener's thread."""

    def __init__(
        self,
        engine: Engine,
        warm: Warm,
        source: BatchSource[T],
        *,
        max_batch_size: int,
        clock: Callable[[], float],
        post: Callable[..., None],
        listener: Listener[T],
    ) -> None:
        self._take = source.take
        self._waits = source.waits
        self._clock = clock
        self._post = post
        self._listener = listener
        self._wakeups: SimpleQueue[None] = SimpleQueue()
        self._suspected_since_s: float | None = None
        self._unreported: ExecutedBatch[T] | None = None
        """A finished batch, not reported until the next one is taken."""
        self.executor: Executor[T] = Executor(
            engine,
            warm.signature,
            max_batch_size=max_batch_size,
            work_of=source.work_of,
            clock=clock,
            report=self._over,
        )
        self.pipeline: Pipeline[T] | None = None
        """Separate threads for host work, if it takes long enough."""
        if pays_mostly(warm.shapes):
            log.info("host work runs on separate threads")
            self.pipeline = Pipeline(
                self.executor, peek=source.peek, full=max_batch_size, clock=clock, wake=self.wake
            )

    def wake(self) -> None:
        """Wake the device's thread after `take` returned nothing: there is work, or the end."""
        self._wakeups.put(None)

    @property
    def busy_since_s(self) -> float | None:
        """Begin of the oldest batch in execution or finishing; None between batches."""
        now = self.executor.busy_since_s
        finishing = None if self.pipeline is None else self.pipeline.busy_since_s
        if now is None or finishing is None:
            return finishing if now is None else now
        return min(now, finishing)

    def run(self, stopping: Callable[[], bool]) -> None:
        """Serve until the server stops.

        Raises:
            DeviceLostError: the engine is lost, or fails everything.
        """
        executor = self.executor
        while not stopping():
            sealed = self._take()
            if self._unreported is not None:
                self._post(self._listener.on_executed, self._unreported)
                self._unreported = None
            if sealed.expired:
                gone = ExecutedBatch(sealed._replace(batch=()), (), self._clock(), 0.0)
                self._post(self._listener.on_executed, gone)
            if sealed.batch:
                executor.busy_since_s = self._clock()
                self._execute(sealed._replace(expired=()) if sealed.expired else sealed)
                executor.busy_since_s = None
            elif not sealed.expired:
                self._idle(sealed.again_s)
            self._report_suspicion()

    def close(self) -> None:
        """End the pipeline's threads."""
        if self.pipeline is not None:
            self.pipeline.stop()

    def _over(self, done: ExecutedBatch[T]) -> None:
        # The listener needs the interpreter at once: if requests wait, the device takes its next
        # batch first, so that the two do not compete. `run` reports this batch.
        if self.pipeline is None and self._waits():
            self._unreported = done
        else:
            self._post(self._listener.on_executed, done)

    def _execute(self, sealed: SealedBatch[T]) -> None:
        if self.pipeline is not None:
            self.pipeline.execute(sealed)
        else:
            self.executor.run(sealed)

    def _idle(self, until_s: float | None) -> None:
        """Wait until woken, or until a batch that waits for more requests is due."""
        if self.pipeline is not None:
            self.pipeline.settle()
        suspected = self.executor.health.suspected
        timeout_s = None if until_s is None else max(0.0, until_s - self._clock())
        if suspected:
            timeout_s = min(PROBE_PAUSE_S, timeout_s or PROBE_PAUSE_S)
        try:
            self._wakeups.get(timeout=timeout_s)
        except Empty:
            if suspected:
                self._probe()

    def _probe(self) -> None:
        if self.pipeline is not None:
            self.pipeline.alone()
        self.executor.health.probe()

    def _report_suspicion(self) -> None:
        since_s, suspected = self._suspected_since_s, self.executor.health.suspected
        if suspected and since_s is None:
            self._suspected_since_s = self._clock()
            self._post(self._listener.on_suspected, True)
        elif not suspected and since_s is not None:
            self._suspected_since_s = None
            self._post(self._listener.on_suspected, False)
        elif since_s is not None and self._clock() - since_s > SUSPICION_S:
            raise DeviceLostError(
                f"for {SUSPICION_S:g} s the engine has failed even the request that succeeded "
                "in warm-up"
            )
