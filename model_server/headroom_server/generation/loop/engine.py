"""Our engine behind its port: the event loop's side of the scheduler.

`device_loop` executes what the scheduler decides, on a thread of its own.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence

from headroom_server.errors import RefusedError
from headroom_server.generation.loop.device_loop import DeviceLoop
from headroom_server.generation.loop.shared_scheduler import SharedScheduler
from headroom_server.generation.loop.startup import WarmUpLimits
from headroom_server.generation.ports import (
    EngineListener,
    EngineStatistics,
    Executor,
    Receive,
)
from headroom_server.generation.receivers import Receivers
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.scheduler import Scheduler
from headroom_server.generation.values import (
    Delivery,
    FinishReason,
    GenerationLimits,
    GenerationRequest,
)


class LoopEngine:
    """An executor and its scheduler behind the engine's port."""

    def __init__(
        self,
        name: str,
        executor: Executor,
        *,
        clock: Callable[[], float],
        options: SchedulingOptions | None = None,
        warm_up: WarmUpLimits | None = None,
        emulated: bool = False,
    ) -> None:
        self.name = name
        self.emulated = emulated
        self._executor = executor
        self._clock = clock
        self._options = options or SchedulingOptions()
        self._warm_up = warm_up or WarmUpLimits()
        self._shared = SharedScheduler()
        self._receivers = Receivers()
        """Receivers of requests in flight; used on the event loop only."""
        self._thread: threading.Thread | None = None

    @property
    def device(self) -> str:
        """Name of the hardware for people."""
        return self._executor.device

    @property
    def limits(self) -> GenerationLimits:
        """Limits of the loaded model; known once it is warm."""
        return self._ready().limits

    @property
    def fastest_s(self) -> float:
        """The shortest iteration ever; 0 before the first."""
        return 0.0 if self._shared.scheduler is None else self._shared.scheduler.fastest_s

    @property
    def executing_since_s(self) -> float | None:
        """Begin of the current iteration; None: none is executed."""
        return self._shared.executing_since_s

    def start(self, post: Callable[..., object], listener: EngineListener) -> None:
        """Start the thread."""

        def report(call: Callable[..., None], *arguments: object) -> None:
            # after `stop` the listener's loop may be closed
            if not self._shared.stopping:
                post(call, *arguments)

        loop = DeviceLoop(
            self._executor,
            self._shared,
            self._options,
            self._warm_up,
            clock=self._clock,
            chance=random.random,
            post=report,
            deliver=self._deliver,
        )
        self._thread = threading.Thread(
            target=loop.run, args=(listener,), name="device", daemon=True
        )
        self._thread.start()

    def submit(self, request: GenerationRequest, receive: Receive) -> None:
        """Accept a request; see `GenerationEngine.submit`."""
        scheduler = self._ready()
        with self._shared.changed:
            scheduler.add(request, self._clock())
            self._receivers[request.key] = receive
            self._shared.changed.notify()

    def check_count(self, tenant: str, count: int, *, batch_class: bool) -> None:
        """Refuse choices that may not wait; see `GenerationEngine.check_count`."""
        scheduler = self._ready()
        with self._shared.changed:
            scheduler.check_count(tenant, count, batch_class=batch_class)

    def cancel(self, key: int) -> None:
        """End a request; nothing is delivered for it any more."""
        if self._receivers.pop(key, None) is None or self._shared.scheduler is None:
            return
        with self._shared.changed:
            if self._shared.scheduler.cancel(key, self._clock()):
                self._shared.ended.append(key)
                self._shared.changed.notify()

    def close_intake(self) -> None:
        """Refuse new requests."""
        with self._shared.changed:
            if self._shared.scheduler is not None:
                self._shared.scheduler.drain()

    def fail_all(self, error: str) -> None:
        """End every request with FAILED; others are accepted."""
        receivers, now_s = list(self._receivers), self._clock()
        for key in receivers:
            with self._shared.changed:
                if self._shared.scheduler is not None and self._shared.scheduler.cancel(key, now_s):
                    self._shared.ended.append(key)
        self._deliver([Delivery(key, (), FinishReason.FAILED, 0, error) for key in receivers])

    def abandon(self) -> None:
        """End every request with SHUTDOWN, and accept no others."""
        with self._shared.changed:
            if self._shared.scheduler is None:
                return
            deliveries = self._shared.scheduler.close(self._clock())
        self._deliver(deliveries)

    def stop(self) -> None:
        """Ask the thread to end after its current iteration."""
        with self._shared.changed:
            self._shared.stopping = True
            self._shared.changed.notify()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; return whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    def statistics(self) -> EngineStatistics:
        """Return the scheduler's counts."""
        with self._shared.changed:
            if self._shared.scheduler is None:
                return EngineStatistics()
            return self._shared.scheduler.statistics._replace(busy_s=self._shared.busy_s)

    def _ready(self) -> Scheduler:
        if self._shared.scheduler is None:
            raise RefusedError("this replica is not ready", retry_after_s=1)
        return self._shared.scheduler

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        self._receivers.deliver(deliveries, self.cancel)
