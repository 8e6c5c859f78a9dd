"""Opens, warms and watches a third-party engine, on a thread with an event loop of its own.

What the engine produced in one turn of this loop is handed to the server's loop in one call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from headroom_server.engine import DeviceLostError, LoadError
from headroom_server.generation.loop.startup import NotWarmError, StoppedError, WarmUpLimits
from headroom_server.generation.ports import EngineListener, WarmEngine
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.third_party.gate import Gate
from headroom_server.generation.third_party.locked_gate import LockedGate
from headroom_server.generation.third_party.ports import Step, ThirdPartyModel
from headroom_server.generation.third_party.shared_gate import SharedGate
from headroom_server.generation.third_party.traffic import Traffic
from headroom_server.generation.third_party.warming import Warming
from headroom_server.generation.values import Delivery
from headroom_server.lifecycle import Phase

log = logging.getLogger("headroom_server")

HEALTH_EVERY_S = 1.0
FAILURES_IN_A_ROW = 3
"""Failed requests after which the engine, not a request, is suspected."""
PROBE_S = 10.0
"""The longest that a probe may take."""
SUSPICION_S = 30.0
LOST = "the engine is lost; see the server's log"


class ModelLoop:
    """Runs a model. `post` calls a function on the server's loop; the two others are called there.

    `deliver` gets what was produced; `fail_all` ends every request with a message.
    """

    def __init__(
        self,
        model: ThirdPartyModel,
        shared: SharedGate,
        options: SchedulingOptions,
        warm_up: WarmUpLimits,
        *,
        clock: Callable[[], float],
        chance: Callable[[], float],
        post: Callable[..., object],
        deliver: Callable[[Sequence[Delivery]], None],
        fail_all: Callable[[str], None],
    ) -> None:
        self._model = model
        self._shared = shared
        self._options = options
        self._warm_up = warm_up
        self._clock = clock
        self._chance = chance
        self._post = post
        self._deliver = deliver
        self._fail_all = fail_all
        self._learning: LockedGate | None = None
        """Learns from the iterations of warm-up after the first use."""

    def run(self, listener: EngineListener) -> None:
        """Load, warm up and serve, until the server stops or the engine is lost."""
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
        self._post(self._fail_all, LOST)
        self._post(listener.on_lost, LOST)

    async def _serve(self, listener: EngineListener) -> None:
        self._shared.loop = asyncio.get_running_loop()
        try:
            self._post(listener.on_phase, Phase.LOAD, self._clock())
            limits = self._model.open(self._observe)
            warming = Warming(
                self._model,
                limits,
                self._warm_up,
                clock=self._clock,
                stopping=self._shared.stopping.is_set,
            )
            locked = LockedGate(Gate(limits, self._options, chance=self._chance), self._clock)
            warm = await self._warmed(locked, warming, listener)
            traffic = Traffic(self._model, locked, lambda some: self._post(self._deliver, some))
            self._shared.locked, self._shared.traffic = locked, traffic
            self._post(listener.on_warm, warm)
            try:
                await self._watch(traffic, warming, listener)
            finally:
                await traffic.close()
        finally:
            self._shared.loop = None
            self._model.close()

    async def _warmed(
        self, locked: LockedGate, warming: Warming, listener: EngineListener
    ) -> WarmEngine:
        self._post(listener.on_phase, Phase.WARM, self._clock())
        first_s = await warming.first_use()
        self._learning = locked  # what is compiled says nothing about later iterations
        shapes = await warming.warm(first_s)
        self._post(listener.on_phase, Phase.SELFTEST, self._clock())
        return WarmEngine(locked.gate.limits, shapes, await warming.self_test())

    def _observe(self, step: Step) -> None:
        if self._shared.locked is not None:
            self._shared.locked.observe(step)
        elif self._learning is not None:
            self._learning.learn(step)

    async def _watch(self, traffic: Traffic, warming: Warming, listener: EngineListener) -> None:
        """Return when the server stops.

        Raises:
            DeviceLostError: the engine ended, or answers nothing.
        """
        suspected_s: float | None = None
        while not self._shared.stopping.is_set():
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
                    await self._shared.over.wait()
            except TimeoutError:
                continue
