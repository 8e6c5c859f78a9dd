"""The only thread that uses the device: it loads, warms and tests the engine, then serves.

It reports to a listener on the listener's own thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from headroom_server.device.batch_loop import BatchLoop, BatchSource
from headroom_server.device.listener import Listener
from headroom_server.device.startup import StartUp, StartupError, StopError, WarmUpPlan
from headroom_server.engine import DeviceLostError, Engine, LoadError

log = logging.getLogger("headroom_server")

T = TypeVar("T")


class DeviceThread(Generic[T]):
    """Owns the engine."""

    def __init__(
        self,
        engine: Engine,
        plan: WarmUpPlan,
        source: BatchSource[T],
        *,
        clock: Callable[[], float],
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._source = source
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: BatchLoop[T] | None = None
        """None until the engine is warm."""

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
        if self._loop is not None:
            self._loop.wake()

    def on_queued(self) -> None:
        """Notify a busy device of a queued request, which may be staged ahead."""
        if self._loop is not None and self._loop.pipeline is not None:
            self._loop.pipeline.on_queued()

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
        """Begin of the oldest batch in execution or finishing; None between batches."""
        return None if self._loop is None else self._loop.busy_since_s

    @property
    def pipelined(self) -> bool:
        """Whether host work runs on separate threads, because it takes long enough."""
        return self._loop is not None and self._loop.pipeline is not None

    @property
    def budget_share(self) -> float:
        """Share of a full batch that is executed at once; 1 unless memory was short."""
        return 1.0 if self._loop is None else self._loop.executor.health.budget.share

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
            self._loop = BatchLoop(
                self._engine,
                warm,
                self._source,
                max_batch_size=self._plan.max_batch_size,
                clock=self._clock,
                post=post,
                listener=listener,
            )
            post(listener.on_warm, warm)
            self._loop.run(self._stop.is_set)
        except StopError:
            return
        except (StartupError, LoadError) as error:
            post(listener.on_lost, str(error))
        except DeviceLostError as error:
            log.exception("the device is lost")
            post(listener.on_lost, f"the device is lost: {error}")
        except Exception as error:  # the end of a thread must never go unnoticed
            log.exception("the device thread ended")
            started = self._loop is not None
            what = "the device thread ended with" if started else "the model did not start:"
            post(listener.on_lost, f"{what} {type(error).__name__}: {error}")
        finally:
            if self._loop is not None:
                self._loop.close()
            self._unload()

    def _unload(self) -> None:
        try:
            self._engine.unload()
        except Exception:  # of a device that may be lost; the thread ends either way
            log.exception("the model could not be unloaded")
