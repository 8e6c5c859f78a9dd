"""Single flight: one of several equal requests computes, the others wait for its result.

| the leader ends with | its followers |
|---|---|
| a value | get it |
| a failed computation | each compute on their own: one failure says little about the next |
| its own end (disconnected, expired, refused) | the first becomes the leader, the rest wait |

Everything runs on the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum, StrEnum, auto
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from headroom_server.errors import (
    AbandonedError,
    DisconnectedError,
    ExpiredError,
    RefusedError,
)

T = TypeVar("T")
V = TypeVar("V")

OWN_ENDS = (
    RefusedError,
    ExpiredError,
    DisconnectedError,
    AbandonedError,
    asyncio.CancelledError,
)
"""Results of a request that do not apply to an equal one."""


class Source(StrEnum):
    """Source of a value."""

    MEMORY = "memory"
    STORE = "redis"
    FLIGHT = "flight"
    """The computation of an equal one that was already running."""
    COMPUTED = "computed"


class Wait(Protocol):
    """Waits for a future; raises what ends the request that waits."""

    async def __call__(self, awaited: asyncio.Future[T]) -> T:
        """Return its result."""


async def wait_forever(awaited: asyncio.Future[T]) -> T:
    """Wait as long as it takes."""
    return await awaited


class Steps(NamedTuple, Generic[V]):
    """Steps in which one request gets the value of its key."""

    look: Callable[[], Awaitable[V | None]]
    """In the second level."""
    compute: Callable[[], Awaitable[V]]
    wait: Wait = wait_forever
    """For the computation of an equal request."""


class _Role(Enum):
    """Next action of a follower that got no value."""

    LEAD = auto()
    ALONE = auto()


_Result: TypeAlias = V | _Role


class _Flight(Generic[V]):
    """One running computation and its followers in order of arrival."""

    def __init__(self) -> None:
        self._followers: deque[asyncio.Future[_Result[V]]] = deque()
        self.over = asyncio.get_running_loop().create_future()
        """Set when no request is left to compute."""

    def join(self) -> asyncio.Future[_Result[V]]:
        """Return a future of the result, as a follower; it may be cancelled at any time."""
        follower: asyncio.Future[_Result[V]] = asyncio.get_running_loop().create_future()
        self._followers.append(follower)
        return follower

    def land(self, result: _Result[V]) -> None:
        """Resolve all followers and end the flight."""
        for follower in self._waiting():
            follower.set_result(result)
        self._followers.clear()
        self.over.set_result(None)

    def hand_over(self) -> bool:
        """Make the first waiting follower the leader; return False, and end, if there is none."""
        for follower in self._waiting():
            follower.set_result(_Role.LEAD)
            return True
        self.over.set_result(None)
        return False

    def _waiting(self) -> Iterable[asyncio.Future[_Result[V]]]:
        while self._followers:
            follower = self._followers.popleft()
            if not follower.done():
                yield follower


class SingleFlight(Generic[V]):
    """The values that are looked up or computed now, and who waits for them.

    `most_waiting` bounds the sum of the followers' weights; more compute on their own.
    """

    def __init__(self, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._waiting = 0
        self._flights: dict[bytes, _Flight[V]] = {}

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._flights)

    async def wait_idle(self) -> None:
        """Wait until nothing is computed any more."""
        while self._flights:
            await asyncio.wait([flight.over for flight in self._flights.values()])

    async def value(self, key: bytes, steps: Steps[V], weight: int = 1) -> tuple[V, Source]:
        """Return the value and its source; raises whatever the steps raise."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight()
            return await self._lead(key, flight, steps)
        if self._waiting + weight > self._most_waiting:
            return await steps.compute(), Source.COMPUTED
        self._waiting += weight
        try:
            result = await self._follow(key, flight, steps.wait)
        finally:
            self._waiting -= weight
        if result is _Role.LEAD:
            return await self._lead(key, flight, steps)
        if result is _Role.ALONE:
            return await steps.compute(), Source.COMPUTED
        return result, Source.FLIGHT

    async def _lead(self, key: bytes, flight: _Flight[V], steps: Steps[V]) -> tuple[V, Source]:
        try:
            value, source = await steps.look(), Source.STORE
            if value is None:
                value, source = await steps.compute(), Source.COMPUTED
        except OWN_ENDS:
            self._pass_on(key, flight)
            raise
        except BaseException:
            self._land(key, flight, _Role.ALONE)
            raise
        self._land(key, flight, value)
        return value, source

    async def _follow(self, key: bytes, flight: _Flight[V], wait: Wait) -> _Result[V]:
        follower = flight.join()
        try:
            return await wait(follower)
        except BaseException:
            # cancel() fails if the future was resolved before the waiter could see it
            resolved = not follower.cancelled() and not follower.cancel()
            if resolved and follower.result() is _Role.LEAD:
                self._pass_on(key, flight)
            raise

    def _land(self, key: bytes, flight: _Flight[V], result: _Result[V]) -> None:
        del self._flights[key]
        flight.land(result)

    def _pass_on(self, key: bytes, flight: _Flight[V]) -> None:
        if not flight.hand_over():
            del self._flights[key]
