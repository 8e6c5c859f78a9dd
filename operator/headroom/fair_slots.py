"""Slots, or bytes, that owners wait for: each has a share; those that wait are served in turns."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headroom.fair_share import FairShare

_Waiting = deque[tuple[int, asyncio.Future[None]]]


class FairSlots:
    """Grants slots within each owner's share; of owners that wait, each gets one in turn."""

    def __init__(self, most: int) -> None:
        self._share = FairShare(most)
        self._waiting: dict[str, _Waiting] = {}
        """Waiting tasks by owner, the one whose turn is next first."""
        self._least = 0
        """No one that waits wants less."""

    @property
    def held(self) -> int:
        """Number of slots that all owners hold."""
        return self._share.held

    @property
    def crowded(self) -> bool:
        """Whether any owner waits."""
        return bool(self._waiting)

    @asynccontextmanager
    async def slot(self, owner: str, amount: int = 1) -> AsyncIterator[None]:
        """Wait for a slot, or several at once (at most all that there are), and hold it."""
        if owner not in self._waiting and self._share.fits(owner, amount):
            self._share.take(owner, amount)
        else:
            await self._granted(owner, amount)
        try:
            yield
        finally:
            self._share.give_back(owner, amount)
            self._grant()

    async def _granted(self, owner: str, amount: int) -> None:
        granted = asyncio.get_running_loop().create_future()
        self._least = min(amount, self._least) if self._waiting else amount
        self._waiting.setdefault(owner, deque()).append((amount, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._share.give_back(owner, amount)
            self._grant()
            if owner in self._waiting:
                self._grant_one(owner)  # forgets this one
            raise

    def _grant(self) -> None:
        """Give free slots to those that wait and whose owners may have more."""
        granted = True
        while granted:
            granted = False
            for owner in list(self._waiting):
                if self._share.free < self._least:  # a thousand owners need not be asked
                    return
                granted = self._grant_one(owner) or granted

    def _grant_one(self, owner: str) -> bool:
        waiting = self._waiting[owner]
        while waiting and waiting[0][1].done():  # cancelled meanwhile
            waiting.popleft()
        fits = bool(waiting) and self._share.fits(owner, waiting[0][0])
        if fits:
            amount, first = waiting.popleft()
            self._share.take(owner, amount)
            first.set_result(None)
            self._waiting[owner] = self._waiting.pop(owner)  # the others have their turn first
        if not waiting:
            del self._waiting[owner]
        return fits
