"""The one thread that touches the device: it loads, warms, tests, then executes batch after batch.

It takes each batch the moment the previous one ends, without a detour over the event loop, and
never waits while there is work. What it learns it reports to a listener, on the listener's own
thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, NamedTuple, Protocol, TypeVar

from headroom_server.batching import Sealed
from headroom_server.engine import DeviceLostError, Engine, LoadError, Work, check_outputs
from headroom_server.lifecycle import Phase
from headroom_server.tensors import Numbers, Signature
from headroom_server.warming import SelfTest, self_test, warm_up

log = logging.getLogger("headroom_server")

Outputs = Mapping[str, Numbers]
T = TypeVar("T")

RETEST_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUpPlan:
    """What has to have happened before the server is ready, and by when."""

    max_batch_size: int
    requests: int
    max_latency_s: float
    timeout_s: float


class Executed(NamedTuple, Generic[T]):
    """One batch that left the device; `outputs` is None where it failed."""

    sealed: Sealed[T]
    outputs: Sequence[Outputs] | None
    began_s: float
    seconds: float


class Listener(Protocol[T]):
    """Who is told. Calls come one after the other, on the listener's thread."""

    def entered(self, phase: Phase) -> None:
        """A startup phase has begun."""

    def tested(self, result: SelfTest) -> None:
        """A self-test has ended, well or not."""

    def warmed(self, signature: Signature, timings: Sequence[tuple[int, float]]) -> None:
        """The device is ready."""

    def executed(self, done: Executed[T]) -> None:
        """A batch is over."""

    def lost(self, message: str) -> None:
        """The device will execute nothing more."""


class StartupError(Exception):
    """The model did not get warm; the message says which rule and what to change."""


class _StopError(Exception):
    pass


def not_warm(plan: WarmUpPlan) -> str:
    """Why a start-up is over."""
    return f"the model is not warm after HEADROOM_WARMUP_TIMEOUT_S={plan.timeout_s:g} s"


class DeviceThread(Generic[T]):
    """Owns the engine. `take` gives the next batch and is called when the device is free."""

    def __init__(
        self,
        engine: Engine,
        plan: WarmUpPlan,
        *,
        take: Callable[[], Sealed[T]],
        work_of: Callable[[T], Work],
        clock: Callable[[], float],
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._take = take
        self._work_of = work_of
        self._clock = clock
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.busy_since_s: float | None = None
        """When the batch that now executes began; None between batches."""

    def start(self, post: Callable[..., object], listener: Listener[T]) -> None:
        """Begin to load. `post(callable, *arguments)` brings a call to the listener's thread."""

        def report(call: Callable[..., object], *arguments: object) -> None:
            # after `stop` the listener's loop may be closed
            if not self._stop.is_set():
                post(call, *arguments)

        self._thread = threading.Thread(
            target=self._run, args=(report, listener), name="device", daemon=True
        )
        self._thread.start()

    def ring(self) -> None:
        """There is work: wake the thread after `take` gave nothing."""
        self._bell.put(None)

    def stop(self) -> None:
        """Ask the thread to end after the batch in hand; nothing is reported any more."""
        self._stop.set()
        self.ring()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    @property
    def alive(self) -> bool:
        """Whether the thread runs; one that has not begun counts as alive."""
        return self._thread is None or self._thread.is_alive()

    def _run(self, post: Callable[..., object], listener: Listener[T]) -> None:
        try:
            signature, timings = self._start_up(post, listener)
            post(listener.warmed, signature, timings)
            self._serve(signature, post, listener)
        except _StopError:
            return
        except (StartupError, LoadError) as error:
            post(listener.lost, str(error))
        except DeviceLostError as error:
            log.exception("the device is lost")
            post(listener.lost, f"the device is lost: {error}")
        except Exception as error:  # the end of a thread must never go unnoticed
            log.exception("the device thread ended")
            post(listener.lost, f"the device thread ended with {type(error).__name__}: {error}")
        finally:
            self._unload()

    def _unload(self) -> None:
        try:
            self._engine.unload()
        except Exception:  # of a device that may be lost; the thread ends either way
            log.exception("the model could not be unloaded")

    def _start_up(
        self, post: Callable[..., object], listener: Listener[T]
    ) -> tuple[Signature, list[tuple[int, float]]]:
        plan, engine, deadline_s = self._plan, self._engine, self._clock() + self._plan.timeout_s

        def checkpoint() -> None:
            if self._stop.is_set():
                raise _StopError
            if self._clock() > deadline_s:
                raise StartupError(not_warm(plan))

        post(listener.entered, Phase.LOAD)
        signature = engine.load()
        checkpoint()
        post(listener.entered, Phase.WARM)
        timings = warm_up(
            engine,
            signature,
            max_batch_size=plan.max_batch_size,
            requests=plan.requests,
            clock=self._clock,
            checkpoint=checkpoint,
        )
        post(listener.entered, Phase.SELFTEST)
        while True:
            result = self_test(
                engine,
                signature,
                requests=plan.requests,
                max_latency_s=plan.max_latency_s,
                clock=self._clock,
                checkpoint=checkpoint,
            )
            post(listener.tested, result)
            if result.passed:
                return signature, timings
            self._pause_before_retest(result, deadline_s)

    def _pause_before_retest(self, result: SelfTest, deadline_s: float) -> None:
        if self._clock() + RETEST_PAUSE_S > deadline_s:
            raise StartupError(
                f"the self-test's p95 of {result.p95_s * 1000:.1f} ms is above "
                f"HEADROOM_WARMUP_MAX_LATENCY_S={result.max_latency_s:g} s, and "
                f"HEADROOM_WARMUP_TIMEOUT_S={self._plan.timeout_s:g} s are over: allow more "
                f"latency, or give the model a faster device"
            )
        if self._stop.wait(RETEST_PAUSE_S):
            raise _StopError

    def _serve(
        self, signature: Signature, post: Callable[..., object], listener: Listener[T]
    ) -> None:
        while not self._stop.is_set():
            sealed = self._take()
            if sealed.batch:
                post(listener.executed, self._execute(signature, sealed))
            elif sealed.expired:
                now_s = self._clock()
                post(listener.executed, Executed(sealed, (), now_s, 0.0))
            else:
                self._await_work(sealed.again_s)

    def _await_work(self, until_s: float | None) -> None:
        timeout_s = None if until_s is None else max(0.0, until_s - self._clock())
        with suppress(Empty):
            self._bell.get(timeout=timeout_s)

    def _execute(self, signature: Signature, sealed: Sealed[T]) -> Executed[T]:
        self.busy_since_s = began_s = self._clock()
        outputs: Sequence[Outputs] | None = None
        try:
            works = [self._work_of(entry.work) for entry in sealed.batch]
            outputs = self._engine.execute(works)
            check_outputs(signature, works, outputs)
        except DeviceLostError:
            raise
        except Exception:  # the batch is answered with an error, the server goes on
            log.exception("a batch of %d items failed", sealed.items)
            outputs = None
        finally:
            self.busy_since_s = None
        return Executed(sealed, outputs, began_s, self._clock() - began_s)
