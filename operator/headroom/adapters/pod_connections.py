"""A minimal HTTP/1.1 GET client for pods; httptools parses the responses.

A page of 6 kB takes 0.06 ms of CPU over a kept connection and 0.14 ms over a new one; with aiohttp
0.40 and 0.55 ms. For a thousand services, 200 pages per second, the difference is a tenth of a
core.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, urlsplit

import httptools

KEPT_OPEN_S = 6.0
"""Longer than the shortest scrape periods, so that connections to pods of up to 400 services are
reused; a period of 15 s is not worth thousands of open connections."""
MOST_KEPT = 256
"""Kept connections; the default limit of open files of a process is 1024."""
MOST_OF_HEAD = 1 << 16
"""Maximum bytes before the body; a body may have as many again, and one for each of its own, in
sizes of chunks, their extensions and trailers: parsers keep or skip those without any bound."""

LOOK_EVERY = 1 << 14
"""Bytes that are parsed before the bounds are looked at: 256 kB in chunks of a byte take 30 ms."""

Take = Callable[[bytes], object]
"""Receives parts of a body; an exception ends the exchange."""
_Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Request:
    """A GET request in wire format, with its address."""

    host: str
    port: int
    text: bytes

    @classmethod
    def of(cls, url: str, headers: str) -> Request:
        """Parse a URL; raise ValueError unless it is plain HTTP with a host."""
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or parts.username is not None:
            raise ValueError("not an http:// URL with a host")
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~") + (
            f"?{quote(parts.query, safe='/%:@!$&()*+,;=~?')}" if parts.query else ""
        )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        port = parts.port or 80
        text = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{headers}\r\n"
        return cls(parts.hostname, port, text.encode("ascii"))


class PodConnections:
    """Connections by address; recently used ones are reused."""

    def __init__(self) -> None:
        self._kept: dict[_Address, tuple[_Connection, float]] = {}
        """Idle connections with the start of their idle time, longest first."""

    async def get(self, request: Request, take: Take) -> int:
        """Send a request, pass the body to `take` in parts, and return the status at the end.

        The caller sets the deadline. Raises OSError if the connection fails, ValueError if the
        response is not HTTP, and exceptions of `take`.
        """
        address = (request.host, request.port)
        kept, _ = self._kept.pop(address, (None, 0.0))
        if kept is not None and not kept.closed:
            try:
                return await self._over(kept, address, request, take)
            except NoAnswerError:
                pass  # it was closed while it was idle
        loop = asyncio.get_running_loop()
        _, fresh = await loop.create_connection(_Connection, request.host, request.port)
        return await self._over(fresh, address, request, take)

    def close(self) -> None:
        """Close idle connections."""
        for connection, _ in self._kept.values():
            connection.close()
        self._kept.clear()

    async def _over(
        self, connection: _Connection, address: _Address, request: Request, take: Take
    ) -> int:
        try:
            status = await connection.exchange(request.text, take)
        except BaseException:
            connection.close()
            raise
        now_s = asyncio.get_running_loop().time()
        self._close_older_than(now_s - KEPT_OPEN_S)
        if connection.closed or address in self._kept or len(self._kept) >= MOST_KEPT:
            connection.close()
        else:
            self._kept[address] = connection, now_s
        return status

    def _close_older_than(self, moment_s: float) -> None:
        while self._kept:
            address, (connection, idle_s) = next(iter(self._kept.items()))
            if idle_s > moment_s:
                return
            connection.close()
            del self._kept[address]


class NoAnswerError(ConnectionError):
    """The connection was closed before the first byte of a response."""


class _Connection(asyncio.Protocol):
    """A connection with sequential exchanges; unsolicited data closes it."""

    __slots__ = (
        "_answer",
        "_body",
        "_came",
        "_done",
        "_head",
        "_take",
        "_transport",
        "_until_closed",
        "closed",
    )

    def __init__(self) -> None:
        self.closed = False
        self._transport: asyncio.Transport | None = None
        self._answer: Any = None
        self._done: asyncio.Future[int] | None = None
        self._take: Take | None = None
        self._came, self._body, self._head, self._until_closed = 0, 0, True, True

    async def exchange(self, text: bytes, take: Take) -> int:
        """Send a request and return the status of its response."""
        assert self._transport is not None
        self._done, self._take = asyncio.get_running_loop().create_future(), take
        self._came, self._body, self._head, self._until_closed = 0, 0, True, True
        self._answer = httptools.HttpResponseParser(self)
        self._transport.write(text)
        try:
            return await self._done
        finally:
            self._done = self._take = self._answer = None

    def close(self) -> None:
        """Close the connection, even within an exchange."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Parse received data."""
        for begin in range(0, len(data), LOOK_EVERY):
            if self._done is None or self._done.done():
                self.close()
                return
            self._feed(data[begin : begin + LOOK_EVERY])

    def _feed(self, data: bytes) -> None:
        self._came += len(data)
        try:
            self._answer.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ValueError(f"not HTTP: {error}"))
        if self._came > MOST_OF_HEAD + 2 * self._body:
            part = "headers" if self._head else "chunk sizes, extensions or trailers"
            self._fail(ValueError(f"more than {MOST_OF_HEAD} bytes of {part}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """End a response without a length; any other one is incomplete."""
        self.closed = True
        if self._done is None or self._done.done():
            return
        if exc is None and not self._head and self._until_closed:
            self._done.set_result(self._status())
        elif self._came:
            self._fail(exc or ConnectionResetError("the connection was closed within the response"))
        else:
            self._fail(NoAnswerError("closed without an answer"))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note whether a header defines the end of the body."""
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self._until_closed = False

    def on_headers_complete(self) -> None:
        """Note the start of the body."""
        self._head = False

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        self._body += len(body)
        if self._take is None or self._done is None or self._done.done():
            return
        try:
            self._take(body)
        except Exception as error:  # noqa: BLE001  (raised by the caller's `take`)
            self._fail(error)

    def on_message_complete(self) -> None:
        """End the exchange."""
        if self._done is not None and not self._done.done():
            if not self._answer.should_keep_alive():
                self.close()
            self._done.set_result(self._status())

    def _status(self) -> int:
        return int(self._answer.get_status_code())

    def _fail(self, error: Exception) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)
        self.close()
