"""Failed iterations: their messages to clients, and when the engine itself is suspected."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headroom_server.engine import DeviceLostError, OutOfMemoryError
from headroom_server.errors import public
from headroom_server.generation.loop.shared_scheduler import SharedScheduler
from headroom_server.generation.loop.startup import StartUp, WarmUpLimits
from headroom_server.generation.ports import EngineListener, Executor
from headroom_server.generation.values import GenerationLimits, Iteration

log = logging.getLogger("headroom_server")

FAILURES_IN_A_ROW = 3
"""Failed iterations of single requests after which the engine, not a request, is suspected."""
PROBE_PAUSE_S = 1.0
SUSPICION_S = 30.0


def message_of(error: Exception, iteration: Iteration) -> str:
    """Log why an iteration failed, and return the message for clients."""
    if isinstance(error, OutOfMemoryError):
        return "the device has no memory for this request"
    if isinstance(error, FloatingPointError):
        if len(iteration.chunks) == 1:  # a line per request, and none per half
            log.warning("a request failed: %s", error)
        return "the model computes NaN or infinity for this request"
    log.error("an iteration failed: %s", public(str(error))[:500], exc_info=error)
    return "the model failed"


class Failures:
    """Counts failures in a row, and probes the engine when they are too many."""

    def __init__(
        self,
        executor: Executor,
        shared: SharedScheduler,
        warm_up: WarmUpLimits,
        *,
        clock: Callable[[], float],
        post: Callable[..., object],
    ) -> None:
        self._shared = shared
        self._clock = clock
        self._post = post
        self._in_a_row = 0
        self._probe = StartUp(
            executor,
            warm_up,
            clock=clock,
            stopping=lambda: shared.stopping,
            on_phase=lambda _: None,
            observe=lambda _, __: None,
        )

    def count(self, iteration: Iteration) -> None:
        """Count a failed iteration, if it was of a single request: others repeat in halves."""
        self._in_a_row += len(iteration.chunks) == 1

    def forget(self) -> None:
        """Forget the failures: an iteration succeeded."""
        self._in_a_row = 0

    @property
    def suspicious(self) -> bool:
        """Whether the engine itself may fail."""
        return self._in_a_row >= FAILURES_IN_A_ROW

    def probe(self, limits: GenerationLimits, listener: EngineListener) -> None:
        """Execute the request of the warm-up until it succeeds again.

        Raises:
            DeviceLostError: it does not for 30 s.
        """
        began_s, suspected = self._clock(), False
        while not self._probe.works(limits):
            if not suspected:
                suspected = True
                self._post(listener.on_suspected, True)
            if self._clock() - began_s > SUSPICION_S:
                raise DeviceLostError("it fails every iteration")
            with self._shared.changed:
                self._shared.changed.wait(PROBE_PAUSE_S)
        self._in_a_row = 0
        if suspected:
            self._post(listener.on_suspected, False)
