"""When an answer ends its connection.

Every answer does while the server drains, once the connection is older than its jittered maximal
age, and while more than two full batches wait: a ClusterIP balances connections, so that a client
that kept one for ever would never reach a new replica, and those who met a crowded one would stay
with it. A connection is closed after an answer, never while idle, so that no request crosses the
closing.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from headroom_server.connection import Connection

SENT_AWAY_PER_S = 32
"""Connections that a crowded replica closes per second: enough to spread clients, while to open a
new one for every request would cost the most where there is the least to spare."""


class LoadStatus(Protocol):
    """When clients do better with another replica."""

    @property
    def draining(self) -> bool:
        """On the way out."""

    @property
    def overloaded(self) -> bool:
        """More waits than two full batches."""


class ClosePolicy:
    """Asked once per answer."""

    def __init__(self, life: LoadStatus) -> None:
        self._life = life
        self._second = self._sent_away = 0

    def due(self, connection: Connection) -> bool:
        """Whether the answer that is to be written now is the connection's last."""
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
