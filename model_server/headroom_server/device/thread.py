"""The only thread that uses the device: it loads, warms, tests, then executes batches.

It takes each batch the moment the previous one ends, without a detour over the event loop, and
never waits while there is work. It reports to a listener on the listener's own thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar

from headroom_server.device.execution import ExecutedBatch, Executor
from headroom_server.device.pipeline import Pipeline, pays_mostly
from headroom_server.device.startup import StartUp, StartupError, StopError, Warm, WarmUpPlan
from headroom_server.device.warming import SelfTest
from headroom_server.engine import DeviceLostError, Engine, LoadError, Work
from headroom_server.lifecycle import Phase
from headroom_server.scheduling.entries import SealedBatch

log = logging.getLogger("headroom_server")

T = TypeVar("T")

PROBE_PAUSE_S = 1.0
SUSPICION_S = 30.0
"""An engine that fails every batch is not ready; after this time only a restart may help."""


class Listener(Protocol[T]):
    """Receives events one after the other, on its own thread."""

    def on_phase(self, phase: Phase, at_s: float) -> None:
        """A startup phase has begun."""

    def on_self_test(self, result: SelfTest) -> None:
        """A self-test has ended, successfully or not."""

    def on_warm(self, warm: Warm) -> None:
        """The device is ready."""

    def on_executed(self, done: ExecutedBatch[T]) -> None:
        """A batch has ended."""

    def on_suspected(self, suspected: bool) -> None:
        """The engine fails every batch, or no longer does."""

    def on_lost(self, message: str) -> None:
        """The device is lost for good."""


class DeviceThread(Generic[T]):
    """Owns the engine.

    `take` returns the next batch and is called when the device is free; `peek` returns what it
    would give now; `waits` returns whether any request waits for a batch.
    """

    def __init__(
        self,
        engine: Engine,
        plan: WarmUpPlan,
        *,
        take: Callable[[], SealedBatch[T]],
        peek: Callable[[], SealedBatch[T]],
        waits: Callable[[], bool],
        work_of: Callable[[T], Work],
        clock: Callable[[], float],
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._take = take
        self._peek = peek
        self._waits = waits
        self._work_of = work_of
        self._clock = clock
        self._wakeups: SimpleQueue[None] = SimpleQueue()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._executor: Executor[T] | None = None
        self._pipeline: Pipeline[T] | None = None
        self._suspected_since_s: float | None = None
        self._unreported: ExecutedBatch[T] | None = None
        """A finished batch, not reported until the next one is taken."""

    def start(self, post: Callable[..., object], listener: Listener[T]) -> None:
        """Start loading. `post(callable, *arguments)` calls a function on the listener's thread."""

        def report(call: Callable[..., None], *arguments: object) -> None:
            # after `stop` the listener's loop may be closed
            if not self._stop.is_set():
                post(call, *arguments)

        self._thread = threading.Thread(
            target=self._run, args=(report, listener), name="device", daemon=True
        )
        self._thread.start()

    def wake(self) -> None:
        """Wake the thread after `take` returned nothing: there is work."""
        self._wakeups.put(None)

    def on_queued(self) -> None:
        """Notify a busy device of a queued request, which may be staged ahead."""
        if self._pipeline is not None:
            self._pipeline.on_queued()

    def stop(self) -> None:
        """Ask the thread to end after its current batch; nothing is reported any more."""
        self._stop.set()
        self.wake()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; return whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    @property
    def alive(self) -> bool:
        """Whether the thread runs; one that has not begun counts as alive."""
        return self._thread is None or self._thread.is_alive()

    @property
    def busy_since_s(self) -> float | None:
        """When the oldest batch in execution or finishing began; None between batches."""
        executor, pipeline = self._executor, self._pipeline
        now = None if executor is None else executor.busy_since_s
        finishing = None if pipeline is None else pipeline.busy_since_s
        if now is None or finishing is None:
            return finishing if now is None else now
        return min(now, finishing)

    @property
    def pipelined(self) -> bool:
        """Whether host work runs on separate threads, because it takes long enough."""
        return self._pipeline is not None

    @property
    def budget_share(self) -> float:
        """Share of a full batch that is executed at once; 1 unless memory was short."""
        return 1.0 if self._executor is None else self._executor.budget.share

    def _run(self, post: Callable[..., None], listener: Listener[T]) -> None:
        try:
            warm = StartUp(
                self._engine,
                self._plan,
                clock=self._clock,
                pause=self._stop.wait,
                on_phase=lambda phase: post(listener.on_phase, phase, self._clock()),
                on_self_test=lambda result: post(listener.on_self_test, result),
            ).run()
            self._prepare(warm, post, listener)
            post(listener.on_warm, warm)
            self._serve(post, listener)
        except StopError:
            return
        except (StartupError, LoadError) as error:
            post(listener.on_lost, str(error))
        except DeviceLostError as error:
            log.exception("the device is lost")
            post(listener.on_lost, f"the device is lost: {error}")
        except Exception as error:  # the end of a thread must never go unnoticed
            log.exception("the device thread ended")
            post(listener.on_lost, f"the device thread ended with {type(error).__name__}: {error}")
        finally:
            if self._pipeline is not None:
                self._pipeline.stop()
            self._unload()

    def _unload(self) -> None:
        try:
            self._engine.unload()
        except Exception:  # of a device that may be lost; the thread ends either way
            log.exception("the model could not be unloaded")

    def _prepare(self, warm: Warm, post: Callable[..., None], listener: Listener[T]) -> None:
        full, clock = self._plan.max_batch_size, self._clock
        self._executor = executor = Executor(
            self._engine,
            warm.signature,
            max_batch_size=full,
            work_of=self._work_of,
            clock=clock,
            report=lambda done: self._over(done, post, listener),
        )
        if pays_mostly(warm.shapes):
            log.info("host work runs on separate threads")
            self._pipeline = Pipeline(
                executor, peek=self._peek, full=full, clock=clock, wake=self.wake
            )

    def _serve(self, post: Callable[..., None], listener: Listener[T]) -> None:
        executor = self._executor
        assert executor is not None
        while not self._stop.is_set():
            sealed = self._take()
            if self._unreported is not None:
                post(listener.on_executed, self._unreported)
                self._unreported = None
            if sealed.expired:
                now_s = self._clock()
                post(listener.on_executed, ExecutedBatch(sealed._replace(batch=()), (), now_s, 0.0))
            if sealed.batch:
                executor.busy_since_s = self._clock()
                self._execute(executor, sealed._replace(expired=()) if sealed.expired else sealed)
                executor.busy_since_s = None
            elif not sealed.expired:
                self._idle(executor, sealed.again_s)
            self._report_suspicion(executor, post, listener)

    def _over(
        self, done: ExecutedBatch[T], post: Callable[..., None], listener: Listener[T]
    ) -> None:
        # The listener needs the interpreter at once: if requests wait, the device takes its next
        # batch first, so that the two do not compete. `_serve` reports this batch.
        if self._pipeline is None and self._waits():
            self._unreported = done
        else:
            post(listener.on_executed, done)

    def _execute(self, executor: Executor[T], sealed: SealedBatch[T]) -> None:
        if self._pipeline is not None:
            self._pipeline.execute(sealed)
        else:
            executor.run(sealed)

    def _idle(self, executor: Executor[T], until_s: float | None) -> None:
        """Wait until woken, or until a batch that waits for more requests is due."""
        if self._pipeline is not None:
            self._pipeline.settle()
        timeout_s = None if until_s is None else max(0.0, until_s - self._clock())
        if executor.suspected:
            timeout_s = min(PROBE_PAUSE_S, timeout_s or PROBE_PAUSE_S)
        try:
            self._wakeups.get(timeout=timeout_s)
        except Empty:
            if executor.suspected:
                self._probe(executor)

    def _probe(self, executor: Executor[T]) -> None:
        if self._pipeline is not None:
            self._pipeline.alone()
        executor.probe()

    def _report_suspicion(
        self, executor: Executor[T], post: Callable[..., None], listener: Listener[T]
    ) -> None:
        since_s = self._suspected_since_s
        if executor.suspected and since_s is None:
            self._suspected_since_s = self._clock()
            post(listener.on_suspected, True)
        elif not executor.suspected and since_s is not None:
            self._suspected_since_s = None
            post(listener.on_suspected, False)
        elif since_s is not None and self._clock() - since_s > SUSPICION_S:
            raise DeviceLostError(
                f"for {SUSPICION_S:g} s the engine has failed even the request that succeeded "
                "in warm-up"
            )
