"""A worker thread that clients use in turns: long prompts are tokenized, or constraints compiled.

What waits is bounded, a client and each of its tenants have at most as much as is free, and work
whose client has left is not done: a constraint may take seconds, a client may send a thousand and
leave.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from headroom_server.connection import Connection
from headroom_server.errors import DisconnectedError, QueueFullError
from headroom_server.web.inference.fair_turns import FairTurns
from headroom_server.web.shared_bound import SharedBound

MOST_WAITING = 1024
"""Requests, with their parsed bodies."""

R = TypeVar("R")


class WorkerTurns:
    """A thread of the name `thread`, and its waiting requests; `waits` names them in errors."""

    def __init__(self, thread: str, waits: str, most_waiting: int = MOST_WAITING) -> None:
        self._thread = ThreadPoolExecutor(1, thread)  # one: such work takes a core
        self._waits = waits
        self._turns = FairTurns()
        self._clients = SharedBound(most_waiting)
        self._tenants: Counter[tuple[str, str]] = Counter()
        """Part of its client's share that each tenant of a client holds."""

    @property
    def waiting(self) -> int:
        """Requests that wait or are worked on."""
        return self._clients.held

    async def run(self, connection: Connection, tenant: str, work: Callable[[], R]) -> R:
        """Return the result of the work.

        Raises:
            QueueFullError: too many wait.
            DisconnectedError: the client has left meanwhile.
        """
        client = connection.client
        # clients first: an address cannot be chosen, a tenant's name can
        if self._tenants[client, tenant] >= self._clients.free(client):
            raise QueueFullError(f"{self._waits} are too many; retry later", retry_after_s=1)
        self._clients.take(client, 1)
        self._tenants[client, tenant] += 1
        try:
            async with self._turns.turn(client, tenant):
                if connection.gone:
                    raise DisconnectedError
                return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._clients.give_back(client, 1)
            self._tenants[client, tenant] -= 1
            if not self._tenants[client, tenant]:
                del self._tenants[client, tenant]
