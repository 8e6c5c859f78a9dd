"""Shares the event loop between the services whose pages take long to parse.

A page of 256 kB of new series takes 50 to 110 ms. Pages of one service are parsed one after
another; once they have taken 50 ms, the service pauses for three times as long, for each service
that is so slow. Together they take a third of the loop, and a tick of another service waits for a
page or two. Usual pages take 0.1 ms and are never paused.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

BUDGET_S = 0.05
PAUSE = 3.0

T = TypeVar("T")


class ParsingTurns:
    """Counts the services that pause now."""

    def __init__(self, seconds: Callable[[], float] = time.thread_time) -> None:
        self._seconds = seconds
        self._pausing = 0

    def begin(self) -> ServiceTurns:
        """Return the turns of one service in one tick."""
        return ServiceTurns(self)

    def now_s(self) -> float:
        """Return the CPU time so far: on a crowded machine a usual page may wait."""
        return self._seconds()

    async def pause(self, spent_s: float) -> None:
        """Leave the loop to others."""
        self._pausing += 1
        try:
            await asyncio.sleep(PAUSE * spent_s * self._pausing)
        finally:
            self._pausing -= 1


class ServiceTurns:
    """Parses the pages of one service, one at a time."""

    def __init__(self, shared: ParsingTurns) -> None:
        self._shared = shared
        self._one = asyncio.Lock()
        self._spent_s = 0.0

    async def parse(self, page: Callable[[], T]) -> T:
        """Return what `page` returns, and pause if the service has used its time."""
        async with self._one:
            begun_s = self._shared.now_s()
            try:
                return page()
            finally:
                self._spent_s += self._shared.now_s() - begun_s
                if self._spent_s > BUDGET_S:
                    spent_s, self._spent_s = self._spent_s, 0.0
                    await self._shared.pause(spent_s)
