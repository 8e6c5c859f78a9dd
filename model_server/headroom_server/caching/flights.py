"""Single flight: one of several equal requests executes, the others wait for its result.

| the leader ends with | its followers |
|---|---|
| outputs | get them |
| a failed execution | each execute on their own: one failure says little about the next |
| its own end (disconnected, expired, refused) | the first becomes the leader, the rest wait |

Everything runs on the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from enum import Enum, auto
from typing import Generic, TypeAlias, TypeVar

from headroom_server.errors import (
    AbandonedError,
    DisconnectedError,
    ExpiredError,
    RefusedError,
)

V = TypeVar("V")

OWN_ENDS = (
    RefusedError,
    ExpiredError,
    DisconnectedError,
    AbandonedError,
    asyncio.CancelledError,
)
"""Results of a request that do not apply to an equal one."""


class FollowerRole(Enum):
    """What a follower does that got no outputs."""

    LEAD = auto()
    ALONE = auto()


FlightResult: TypeAlias = V | FollowerRole


class Flight(Generic[V]):
    """One running execution and its followers in order of arrival."""

    def __init__(self) -> None:
        self._followers: deque[asyncio.Future[FlightResult[V]]] = deque()
        self.over = asyncio.get_running_loop().create_future()
        """Set when no request is left to execute it."""

    def join(self) -> asyncio.Future[FlightResult[V]]:
        """Return a future of the result, as a follower; it may be cancelled at any time."""
        follower: asyncio.Future[FlightResult[V]] = asyncio.get_running_loop().create_future()
        self._followers.append(follower)
        return follower

    def land(self, word: FlightResult[V]) -> None:
        """Resolve all followers and end the flight."""
        for follower in self._waiting():
            follower.set_result(word)
        self._followers.clear()
        self.over.set_result(None)

    def hand_over(self) -> bool:
        """Make the first waiting follower the leader; return False, and end, if there is none."""
        for follower in self._waiting():
            follower.set_result(FollowerRole.LEAD)
            return True
        self.over.set_result(None)
        return False

    def _waiting(self) -> Iterable[asyncio.Future[FlightResult[V]]]:
        while self._followers:
            follower = self._followers.popleft()
            if not follower.done():
                yield follower
