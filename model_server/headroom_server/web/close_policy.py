"""Decides when a response closes its connection.

It does while the server drains, once the connection exceeds its jittered maximum age, and while
more than two full batches wait: a ClusterIP balances connections, so that a client that keeps one
forever would never reach a new replica, or leave an overloaded one. A connection is closed after a
response, never while idle, so that no request is lost to a race.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from headroom_server.connection import Connection

SENT_AWAY_PER_S = 32
"""Connections that an overloaded replica closes per second: enough to spread clients, while closing
after every response would add the most work to the replica that has the least capacity."""


class LoadStatus(Protocol):
    """Conditions under which clients should use another replica."""

    @property
    def draining(self) -> bool:
        """Whether the server drains."""

    @property
    def overloaded(self) -> bool:
        """Whether more than two full batches wait."""


class ClosePolicy:
    """Decides for each response."""

    def __init__(self, life: LoadStatus) -> None:
        self._life = life
        self._second = self._sent_away = 0

    def due(self, connection: Connection) -> bool:
        """Return whether the next response is the connection's last."""
        life, now_s = self._life, asyncio.get_running_loop().time()
        return (
            life.draining
            or now_s >= connection.retire_at_s
            or (life.overloaded and self._sends_away(now_s))
        )

    def _sends_away(self, now_s: float) -> bool:
        second = int(now_s)
        if second != self._second:
            self._second, self._sent_away = second, 0
        self._sent_away += 1
        return self._sent_away <= SENT_AWAY_PER_S
