"""Long prompts are tokenized, and constraints compiled, on one thread, in turns of the clients.

What waits is bounded, a client has at most as much as is free, and work whose client has left is
not done: a constraint may take seconds, a client may send a thousand and leave.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from headroom_server.connection import Connection
from headroom_server.errors import DisconnectedError, QueueFullError
from headroom_server.web.fair_turns import FairTurns
from headroom_server.web.receiving import Shares

MOST_WAITING = 1024
"""Requests, with their parsed bodies."""

R = TypeVar("R")


class EncodingTurns:
    """The thread, and who waits for it."""

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        # one: tokenizing takes one core
        self._thread = ThreadPoolExecutor(1, "tokenizer")
        self._turns = FairTurns()
        self._waiting = Shares(most_waiting)

    @property
    def waiting(self) -> int:
        """Requests that wait or are encoded."""
        return self._waiting.held

    async def run(self, connection: Connection, tenant: str, work: Callable[[], R]) -> R:
        """Return what the work returns.

        Raises:
            QueueFullError: too many wait.
            DisconnectedError: the client has left meanwhile.
        """
        owner = f"{connection.client} {tenant}"
        if not self._waiting.fits(owner, 1):
            raise QueueFullError(
                "prompts that wait to be tokenized are too many; retry later", retry_after_s=1
            )
        self._waiting.take(owner, 1)
        try:
            async with self._turns.turn(connection.client, tenant):
                if connection.gone:
                    raise DisconnectedError
                return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._waiting.give_back(owner, 1)
