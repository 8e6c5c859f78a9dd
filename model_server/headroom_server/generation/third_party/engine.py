"""A third-party engine behind the engine's port: the server's side of the gate.

Requests wait in the gate; `model_loop` hands them over as the engine can take them, on a thread of
its own.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence

from headroom_server.errors import RefusedError
from headroom_server.generation.loop.startup import WarmUpLimits
from headroom_server.generation.ports import EngineListener, EngineStatistics, Receive
from headroom_server.generation.receivers import Receivers
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.third_party.locked_gate import LockedGate
from headroom_server.generation.third_party.model_loop import ModelLoop
from headroom_server.generation.third_party.ports import ThirdPartyModel
from headroom_server.generation.third_party.shared_gate import SharedGate
from headroom_server.generation.values import (
    Delivery,
    FinishReason,
    GenerationLimits,
    GenerationRequest,
)


class ThirdPartyEngine:
    """A model with its own scheduler behind the engine's port."""

    emulated = False

    def __init__(
        self,
        name: str,
        model: ThirdPartyModel,
        *,
        clock: Callable[[], float],
        options: SchedulingOptions | None = None,
        warm_up: WarmUpLimits | None = None,
    ) -> None:
        self.name = name
        self._model = model
        self._clock = clock
        self._options = options or SchedulingOptions()
        self._warm_up = warm_up or WarmUpLimits()
        self._shared = SharedGate()
        self._receivers = Receivers()
        """Receivers of requests in flight; used on the server's loop only."""
        self._thread: threading.Thread | None = None

    @property
    def device(self) -> str:
        """Name of the hardware for people."""
        return self._model.device

    @property
    def limits(self) -> GenerationLimits:
        """Limits of the loaded model; known once it is warm."""
        return self._ready().gate.limits

    @property
    def fastest_s(self) -> float:
        """The shortest iteration ever; 0 before the first."""
        locked = self._shared.locked
        return 0.0 if locked is None else locked.gate.state.cost.fastest_s

    @property
    def executing_since_s(self) -> float | None:
        """Time of the engine's last progress, while it has something to do."""
        locked = self._shared.locked
        return None if locked is None else locked.progress_s

    def start(self, post: Callable[..., object], listener: EngineListener) -> None:
        """Start the thread."""

        def report(call: Callable[..., None], *arguments: object) -> None:
            # after `stop` the listener's loop may be closed
            if not self._shared.stopping.is_set():
                post(call, *arguments)

        loop = ModelLoop(
            self._model,
            self._shared,
            self._options,
            self._warm_up,
            clock=self._clock,
            chance=random.random,
            post=report,
            deliver=self._receive,
            fail_all=self.fail_all,
        )
        self._thread = threading.Thread(
            target=loop.run, args=(listener,), name="device", daemon=True
        )
        self._thread.start()

    def submit(self, request: GenerationRequest, receive: Receive) -> None:
        """Accept a request; see `GenerationEngine.submit`."""
        locked = self._ready()
        with locked.lock:
            locked.gate.add(request, self._clock())
        self._receivers[request.key] = receive
        self._shared.wake(lambda traffic: traffic.hand_over())

    def check_count(self, tenant: str, count: int, *, batch_class: bool) -> None:
        """Refuse choices that may not wait; see `GenerationEngine.check_count`."""
        locked = self._ready()
        with locked.lock:
            locked.gate.check_count(tenant, count, batch_class=batch_class)

    def cancel(self, key: int) -> None:
        """End a request; nothing is delivered for it any more."""
        locked = self._shared.locked
        if self._receivers.pop(key, None) is None or locked is None:
            return
        with locked.lock:
            running = locked.gate.cancel(key)
        if running:
            self._shared.wake(lambda traffic: traffic.abort(key))

    def close_intake(self) -> None:
        """Refuse new requests."""
        locked = self._shared.locked
        if locked is not None:
            with locked.lock:
                locked.gate.drain()

    def fail_all(self, error: str) -> None:
        """End every request with FAILED; others are accepted."""
        self._end_all(FinishReason.FAILED, error)

    def abandon(self) -> None:
        """End every request with SHUTDOWN, and accept no others."""
        self.close_intake()
        self._end_all(FinishReason.SHUTDOWN, "")

    def stop(self) -> None:
        """Ask the thread to end."""
        self._shared.stop()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; return whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    def statistics(self) -> EngineStatistics:
        """Return the counts of the gate and the report of the engine."""
        locked = self._shared.locked
        return EngineStatistics() if locked is None else locked.statistics()

    def _ready(self) -> LockedGate:
        if self._shared.locked is None:
            raise RefusedError("this replica is not ready", retry_after_s=1)
        return self._shared.locked

    def _end_all(self, reason: FinishReason, error: str) -> None:
        locked = self._shared.locked
        if locked is None:
            return
        with locked.lock:
            deliveries = locked.gate.end_all(reason, error)
        self._receive(deliveries)
        for key in [delivery.key for delivery in deliveries]:
            self._shared.wake(lambda traffic, key=key: traffic.abort(key))  # type: ignore[misc]

    def _receive(self, deliveries: Sequence[Delivery]) -> None:
        self._receivers.deliver(deliveries, self.cancel)
