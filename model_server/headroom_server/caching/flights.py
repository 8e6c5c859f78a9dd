"""Single flight: of equal requests one executes, and the others wait for what becomes of it.

| the leader ends with | its followers |
|---|---|
| outputs | get them |
| a failure of its execution | execute each on its own: what one met says little of the next |
| its own end (it left, expired, was refused) | the first of them leads, the rest wait for it |

All of it runs on the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from enum import Enum, auto
from typing import TypeAlias

from headroom_server.device.execution import Outputs


class FollowerRole(Enum):
    """What a follower does that got no outputs."""

    LEAD = auto()
    ALONE = auto()


FlightResult: TypeAlias = "Outputs | FollowerRole"


class Flight:
    """One execution under way, and who waits for it in order of arrival."""

    def __init__(self) -> None:
        self._followers: deque[asyncio.Future[FlightResult]] = deque()
        self.over = asyncio.get_running_loop().create_future()
        """Set when nobody is left to execute it."""

    def join(self) -> asyncio.Future[FlightResult]:
        """Follow: the future says what is to be done. It may be given up at any time."""
        follower: asyncio.Future[FlightResult] = asyncio.get_running_loop().create_future()
        self._followers.append(follower)
        return follower

    def land(self, word: FlightResult) -> None:
        """Say it to all, and be over."""
        for follower in self._waiting():
            follower.set_result(word)
        self._followers.clear()
        self.over.set_result(None)

    def hand_over(self) -> bool:
        """Let the first that still waits lead; false, and over, where there is none."""
        for follower in self._waiting():
            follower.set_result(FollowerRole.LEAD)
            return True
        self.over.set_result(None)
        return False

    def _waiting(self) -> Iterable[asyncio.Future[FlightResult]]:
        while self._followers:
            follower = self._followers.popleft()
            if not follower.done():
                yield follower
