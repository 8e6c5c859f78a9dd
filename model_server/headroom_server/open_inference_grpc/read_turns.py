"""Turns to read a message: each counts the bytes of the largest one until it is parsed."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

from headroom_server.web.shared_bound import SharedBound


class ReadTurns:
    """Turns in the order of arrival, as far as the bytes and each client's share allow."""

    def __init__(self, receiving: SharedBound, max_message_bytes: int) -> None:
        self._receiving = receiving
        self._size = min(max_message_bytes, receiving.most // 2)
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        receiving.freed = self._grant

    async def take(self, client: str) -> None:
        """Wait for a turn; it must be given back."""
        if self._receiving.fits(client, self._size):
            self._receiving.take(client, self._size)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((client, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(client)
            else:
                with suppress(ValueError):
                    self._waiting.remove((client, turn))
            raise

    def give_back(self, client: str) -> None:
        """Count the bytes of a turn no longer."""
        self._receiving.give_back(client, self._size)

    def _grant(self) -> None:
        """Give turns to the waiting calls, in their order, as far as they fit."""
        later: deque[tuple[str, asyncio.Future[None]]] = deque()
        refused: set[str] = set()
        while self._waiting and self._receiving.held + self._size <= self._receiving.most:
            client, turn = self._waiting.popleft()
            if turn.done():
                continue
            if client in refused or not self._receiving.fits(client, self._size):
                refused.add(client)
                later.append((client, turn))
                continue
            self._receiving.take(client, self._size)
            turn.set_result(None)
        later.extend(self._waiting)
        self._waiting = later
