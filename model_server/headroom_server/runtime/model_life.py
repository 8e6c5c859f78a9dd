"""The life of one model, whatever executes it: phases, readiness to accept, drain and end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from headroom_server.lifecycle import Lifecycle, Phase
from headroom_server.scheduling.admission import Refusal, refusal_when_closed

log = logging.getLogger("headroom_server")

STARTUP_SLACK_S = 1.0
"""Time within which the executing side reports a start-up timeout itself, if it still responds."""


class ModelLife:
    """Base of the runners of a model; used on the event loop's thread."""

    def __init__(self, model: str, clock: Callable[[], float]) -> None:
        self.model = model
        self.clock = clock
        self.lifecycle = Lifecycle(since_s=clock())
        self.draining = False
        """Whether it drains."""
        self.failure: str | None = None
        """Reason why nothing can be executed any more."""
        self._began_s = clock()
        self._intake_open = True
        self._ended = asyncio.Event()
        self._settled = asyncio.Event()

    async def started(self) -> None:
        """Wait until the model is warm, has failed, or is no longer wanted."""
        await self._settled.wait()

    async def failed(self) -> str:
        """Wait until nothing can be executed any more; return the reason."""
        await self._ended.wait()
        return self.failure or ""

    def drain(self) -> None:
        """Become unready. A loaded model accepts requests until the intake is closed."""
        self._settled.set()
        if not self.draining:
            self._enter(Phase.DRAINING)

    def close_intake(self) -> None:
        """Refuse new requests from now on."""
        self._intake_open = False

    def on_phase(self, phase: Phase, at_s: float | None = None) -> None:
        """A startup phase began; the loop may learn of it later."""
        if self.lifecycle.starting:
            self._enter(phase, at_s)

    def _warmed(self) -> None:
        if self.lifecycle.starting:
            self._enter(Phase.READY)
        self._settled.set()

    def _lost(self) -> None:
        self._ended.set()
        self._settled.set()

    def _stopped(self) -> None:
        if self.lifecycle.phase is not Phase.STOPPED:
            self._enter(Phase.STOPPED)

    def _start_hangs(self, timeout_s: float) -> bool:
        over_s = self._began_s + timeout_s + STARTUP_SLACK_S
        return self.lifecycle.starting and self.failure is None and self.clock() > over_s

    def _refusal(self, *, serving: bool) -> Refusal | None:
        """Return why no request is accepted unless it is ready; None if one is all the same.

        `serving`: it is loaded and able to execute.
        """
        draining = self.draining and not (self._intake_open and serving)
        return refusal_when_closed(ready=serving, draining=draining)

    def _enter(self, phase: Phase, at_s: float | None = None) -> None:
        left = self.lifecycle
        now_s = self.clock() if at_s is None else max(at_s, left.since_s)
        self.lifecycle = left.advance(phase, now_s)
        self.draining = phase is Phase.DRAINING or phase is Phase.STOPPED
        spent_s = self.lifecycle.spent_s[left.phase]
        log.info("%s: %s after %.2f s of %s", self.model, phase, spent_s, left.phase)
