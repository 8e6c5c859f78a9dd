"""A foreign engine behind the engine's port: a thread with an event loop of its own.

Requests wait in the gate and are handed over as the engine can take them. What the engine produced
in one turn of its loop is handed to the server's loop in one call.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections.abc import Callable, Sequence

from headroom_server.engine import DeviceLostError, LoadError
from headroom_server.errors import RefusedError
from headroom_server.generation.foreign.gate import Gate
from headroom_server.generation.foreign.guarded import GuardedGate
from headroom_server.generation.foreign.ports import ForeignModel, Step
from headroom_server.generation.foreign.traffic import Traffic
from headroom_server.generation.foreign.warming import Warming
from headroom_server.generation.loop.startup import NotWarmError, StoppedError, WarmUpLimits
from headroom_server.generation.ports import EngineListener, EngineStatistics, Receive, WarmEngine
from headroom_server.generation.receivers import Receivers
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.values import (
    Delivery,
    FinishReason,
    GenerationLimits,
    GenerationRequest,
)
from headroom_server.lifecycle import Phase

log = logging.getLogger("headroom_server")

HEALTH_EVERY_S = 1.0
FAILURES_IN_A_ROW = 3
"""Failed requests after which the engine, not a request, is suspected."""
PROBE_S = 10.0
"""The longest that a probe may take."""
SUSPICION_S = 30.0
LOST = "the engine is lost; see the server's log"


class ForeignEngine:
    """A model with its own scheduler behind the engine's port."""

    emulated = False

    def __init__(
        self,
        name: str,
        model: ForeignModel,
        *,
        clock: Callable[[], float],
        options: SchedulingOptions | None = None,
        warm_up: WarmUpLimits | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self._model = model
        self._clock = clock
        self._options = options or SchedulingOptions()
        self._warm_up = warm_up or WarmUpLimits()
        self._chance = chance
        self._guarded: GuardedGate | None = None
        """None until the engine is warm."""
        self._traffic: Traffic | None = None
        self._receivers = Receivers()
        """Receivers of requests in flight; used on the server's loop only."""
        self._post: Callable[..., object] = lambda *_: None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """The engine's, while it runs."""
        self._stopping = threading.Event()
        self._over = asyncio.Event()
        """Set on the engine's loop."""
        self._learning: GuardedGate | None = None
        """Learns from the iterations of warm-up after the first use."""

    # ---- on the server's loop

    @property
    def device(self) -> str:
        """Name of the hardware for people."""
        return self._model.device

    @property
    def limits(self) -> GenerationLimits:
        """What the loaded model admits; known once it is warm."""
        return self._ready().gate.limits

    @property
    def fastest_s(self) -> float:
        """The shortest iteration ever; 0 before the first."""
        return 0.0 if self._guarded is None else self._guarded.gate.state.cost.fastest_s

    @property
    def executing_since_s(self) -> float | None:
        """When the engine last did something, while it has something to do."""
        return None if self._guarded is None else self._guarded.progress_s

    def start(self, post: Callable[..., object], listener: EngineListener) -> None:
        """Start the thread."""

        def report(call: Callable[..., None], *arguments: object) -> None:
            # after `stop` the listener's loop may be closed
            if not self._stopping.is_set():
                post(call, *arguments)

        self._post = report
        self._thread = threading.Thread(
            target=self._run, args=(listener,), name="device", daemon=True
        )
        self._thread.start()

    def submit(self, request: GenerationRequest, receive: Receive) -> None:
        """Accept a request; see `GenerationEngine.submit`."""
        guarded = self._ready()
        with guarded.lock:
            guarded.gate.add(request, self._clock())
        self._receivers[request.key] = receive
        self._wake(lambda traffic: traffic.hand_over())

    def check_count(self, tenant: str, count: int, *, batch_class: bool) -> None:
        """Refuse choices that may not wait; see `GenerationEngine.check_count`."""
        guarded = self._ready()
        with guarded.lock:
            guarded.gate.check_count(tenant, count, batch_class=batch_class)

    def cancel(self, key: int) -> None:
        """End a request; nothing is delivered for it any more."""
        guarded = self._guarded
        if self._receivers.pop(key, None) is None or guarded is None:
            return
        with guarded.lock:
            running = guarded.gate.cancel(key)
        if running:
            self._wake(lambda traffic: traffic.abort(key))

    def close_intake(self) -> None:
        """Refuse new requests."""
        if self._guarded is not None:
            with self._guarded.lock:
                self._guarded.gate.drain()

    def fail_all(self, error: str) -> None:
        """End every request with FAILED; others are accepted."""
        self._end_all(FinishReason.FAILED, error)

    def abandon(self) -> None:
        """End every request with SHUTDOWN, and accept no others."""
        self.close_intake()
        self._end_all(FinishReason.SHUTDOWN, "")

    def stop(self) -> None:
        """Ask the thread to end."""
        self._stopping.set()
        self._call(self._over.set)

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; return whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    def statistics(self) -> EngineStatistics:
        """Return what the gate counted and the engine reported."""
        return EngineStatistics() if self._guarded is None else self._guarded.statistics()

    def _ready(self) -> GuardedGate:
        if self._guarded is None:
            raise RefusedError("this replica is not ready", retry_after_s=1)
        return self._guarded

    def _wake(self, call: Callable[[Traffic], None]) -> None:
        traffic = self._traffic
        if traffic is not None:
            self._call(lambda: call(traffic))

    def _call(self, call: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None:
            try:
                loop.call_soon_threadsafe(call)
            except RuntimeError:  # it was closed in between: the engine has ended
                log.debug("the engine's loop has ended")

    def _end_all(self, reason: FinishReason, error: str) -> None:
        guarded = self._guarded
        if guarded is None:
            return
        with guarded.lock:
            deliveries = guarded.gate.end_all(reason, error)
        self._receive(deliveries)
        for key in [delivery.key for delivery in deliveries]:
            self._wake(lambda traffic, key=key: traffic.abort(key))  # type: ignore[misc]

    def _receive(self, deliveries: Sequence[Delivery]) -> None:
        self._receivers.deliver(deliveries, self.cancel)

    # ---- on the engine's thread

    def _run(self, listener: EngineListener) -> None:
        try:
            asyncio.run(self._serve(listener))
        except StoppedError:
            pass
        except (LoadError, NotWarmError) as error:
            self._post(listener.on_lost, str(error))
        except DeviceLostError as error:
            log.error("the engine is lost: %s", error)
            self._lose(listener)
        except Exception:  # the last resort, which logs it
            log.exception("the engine's thread ended")
            self._lose(listener)

    def _lose(self, listener: EngineListener) -> None:
        self._post(self._end_all, FinishReason.FAILED, LOST)
        self._post(listener.on_lost, LOST)

    async def _serve(self, listener: EngineListener) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            self._post(listener.on_phase, Phase.LOAD, self._clock())
            limits = self._model.open(self._observe)
            warming = Warming(
                self._model,
                limits,
                self._warm_up,
                clock=self._clock,
                stopping=self._stopping.is_set,
            )
            guarded = GuardedGate(Gate(limits, self._options, chance=self._chance), self._clock)
            warm = await self._warmed(guarded, warming, listener)
            traffic = Traffic(self._model, guarded, lambda some: self._post(self._receive, some))
            self._guarded, self._traffic = guarded, traffic
            self._post(listener.on_warm, warm)
            try:
                await self._watch(traffic, warming, listener)
            finally:
                await traffic.close()
        finally:
            self._loop = None
            self._model.close()

    async def _warmed(
        self, guarded: GuardedGate, warming: Warming, listener: EngineListener
    ) -> WarmEngine:
        self._post(listener.on_phase, Phase.WARM, self._clock())
        first_s = await warming.first_use()
        self._learning = guarded  # what is compiled says nothing about later iterations
        shapes = await warming.warm(first_s)
        self._post(listener.on_phase, Phase.SELFTEST, self._clock())
        return WarmEngine(guarded.gate.limits, shapes, await warming.self_test())

    def _observe(self, step: Step) -> None:
        if self._guarded is not None:
            self._guarded.observe(step)
        elif self._learning is not None:
            self._learning.learn(step)

    async def _watch(self, traffic: Traffic, warming: Warming, listener: EngineListener) -> None:
        """Return when the server stops.

        Raises:
            DeviceLostError: the engine ended, or answers nothing.
        """
        suspected_s: float | None = None
        while not self._stopping.is_set():
            if self._model.lost:
                raise DeviceLostError("it ended, or says that it cannot continue")
            if traffic.failures >= FAILURES_IN_A_ROW:
                if await warming.works(PROBE_S):
                    traffic.failures = 0
                    if suspected_s is not None:
                        suspected_s = None
                        self._post(listener.on_suspected, False)
                elif suspected_s is None:
                    suspected_s = self._clock()
                    self._post(listener.on_suspected, True)
                elif self._clock() - suspected_s > SUSPICION_S:
                    raise DeviceLostError("it fails every request")
            try:
                async with asyncio.timeout(HEALTH_EVERY_S):
                    await self._over.wait()
            except TimeoutError:
                continue
