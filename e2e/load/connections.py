"""The connections of a client: how many at most, and how many requests each of them takes.

A bounded pool gives the connection that was used last, as the pools of Go and of urllib3 do, and
never closes one for being idle: where the server closes none, each stays with the replica that it
was opened to. A request without a free connection waits for one, in order.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import aiohttp

IDLE_S = 24 * 3600.0
"""No run is as long: an idle connection is kept."""

OpenSession = Callable[[aiohttp.TCPConnector], aiohttp.ClientSession]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """Connections of a client."""

    limit: int | None = None
    """Most connections, and so most requests under way; None: one for each request that needs it.
    """
    requests_each: int = 0
    """Requests after which a connection is closed and another opened; 0: never; 1: a new connection
    for each request."""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ValueError: the message names the rule and the value.
        """
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"connections must be at least 1; got {self.limit}")
        if self.requests_each < 0:
            raise ValueError(
                f"requests per connection must be 0 (never reopened) or more; "
                f"got {self.requests_each}"
            )
        if self.limit is None and self.requests_each > 1:
            raise ValueError(
                f"requests per connection above 1 need a number of connections; "
                f"got {self.requests_each} without one: add --connections"
            )


@dataclass(slots=True)
class _Connection:
    """A session of one connection, opened with its first request."""

    session: aiohttp.ClientSession
    requests: int = 0


class Pool:
    """Sessions of one connection each, at most `limit` of them in use."""

    def __init__(self, limit: int, requests_each: int, open_session: OpenSession) -> None:
        self._requests_each, self._open_session = requests_each, open_session
        self._all = [_Connection(self._new()) for _ in range(limit)]
        self._free: asyncio.LifoQueue[_Connection] = asyncio.LifoQueue()
        for one in self._all:
            self._free.put_nowait(one)

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Wait for a free connection and lend it for one request."""
        one = await self._free.get()
        try:
            yield one.session
            one.requests += 1
            if one.requests == self._requests_each:
                await one.session.close()
                one.session, one.requests = self._new(), 0
        finally:
            self._free.put_nowait(one)

    async def close(self) -> None:
        """Close every connection."""
        for one in self._all:
            await one.session.close()

    def _new(self) -> aiohttp.ClientSession:
        return self._open_session(aiohttp.TCPConnector(limit=1, keepalive_timeout=IDLE_S))
