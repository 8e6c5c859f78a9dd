"""Resolves the futures of held requests when the buffer dispatches or refuses them."""

from __future__ import annotations

import asyncio

from headroom.activator.held_request import HeldRequest, Refusal
from headroom.activator.request_buffer import RequestBuffer
from headroom.gateway.values import Endpoint

LOOK_EVERY_S = 0.05
"""Time between two searches for expired and retryable requests."""

Outcome = Endpoint | Refusal


class Dispatcher:
    """Waits for the outcome of held requests on an event loop."""

    def __init__(self, buffer: RequestBuffer) -> None:
        self._buffer = buffer
        self._waiting: dict[HeldRequest, asyncio.Future[Outcome]] = {}

    def wait(self, held: HeldRequest) -> asyncio.Future[Outcome]:
        """Return a future of the replica or the refusal, which may be older than this wait."""
        turn: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[held] = turn
        if held.refusal is not None:
            turn.set_result(held.refusal)
        self.dispatch(held.key)
        return turn

    def end(self, held: HeldRequest) -> None:
        """Release a request and dispatch waiting ones."""
        self._waiting.pop(held, None)
        self._buffer.done(held)
        self.dispatch(held.key)

    def dispatch(self, key: str | None = None) -> None:
        """Resolve the requests of one service, or of all, that are dispatched or refused now."""
        turn = self._buffer.dispatch(asyncio.get_running_loop().time(), key)
        outcomes: list[tuple[HeldRequest, Outcome]] = [*turn.given, *turn.refused]
        for held, outcome in outcomes:
            waiting = self._waiting.get(held)
            if waiting is not None and not waiting.done():
                waiting.set_result(outcome)

    async def run(self) -> None:
        """Dispatch periodically, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if self._waiting:
                self.dispatch()
