"""Slots for requests under way, shared by namespaces: silent pods of one do not stop the others."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headroom.fair_share import FairShare


class FairSlots:
    """Grants slots in order of arrival, within each owner's share."""

    def __init__(self, most: int) -> None:
        self._share = FairShare(most)
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def slot(self, owner: str) -> AsyncIterator[None]:
        """Wait for a slot, and hold it."""
        if self._share.fits(owner, 1):
            self._share.take(owner, 1)
        else:
            await self._granted(owner)
        try:
            yield
        finally:
            self._share.give_back(owner, 1)
            self._grant()

    async def _granted(self, owner: str) -> None:
        granted = asyncio.get_running_loop().create_future()
        self._waiting.append((owner, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._share.give_back(owner, 1)
                self._grant()
            else:
                self._waiting.remove((owner, granted))
            raise

    def _grant(self) -> None:
        """Give free slots to those that wait and whose owners may have more."""
        later: deque[tuple[str, asyncio.Future[None]]] = deque()
        for owner, granted in self._waiting:
            if self._share.fits(owner, 1):
                self._share.take(owner, 1)
                granted.set_result(None)
            else:
                later.append((owner, granted))
        self._waiting = later
