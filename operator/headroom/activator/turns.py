"""Tells whoever waits that it is his turn: what is held, on a loop."""

from __future__ import annotations

import asyncio

from headroom.activator.holding import Holding, Refusal, Ticket
from headroom.gateway.values import Endpoint

LOOK_EVERY_S = 0.05
"""For what waits no longer, or may be tried again."""

Outcome = Endpoint | Refusal


class Turns:
    """Who waits for a turn, and what became of it."""

    def __init__(self, holding: Holding) -> None:
        self._holding = holding
        self._waiting: dict[Ticket, asyncio.Future[Outcome]] = {}

    def wait(self, ticket: Ticket) -> asyncio.Future[Outcome]:
        """Give what becomes done with the replica, or with the refusal."""
        turn: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = turn
        self.take()
        return turn

    def end(self, ticket: Ticket) -> None:
        """Give back what a request had; others may have it now."""
        self._waiting.pop(ticket, None)
        self._holding.done(ticket)
        self.take()

    def take(self) -> None:
        """Tell all whose turn it is now."""
        turn = self._holding.turn(asyncio.get_running_loop().time())
        outcomes: list[tuple[Ticket, Outcome]] = [*turn.given, *turn.refused]
        for ticket, outcome in outcomes:
            waiting = self._waiting.get(ticket)
            if waiting is not None and not waiting.done():
                waiting.set_result(outcome)

    async def look(self) -> None:
        """See to what is due, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if self._waiting:
                self.take()
