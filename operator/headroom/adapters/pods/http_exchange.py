"""A connection with one HTTP/1.1 exchange after another, bounded; httptools parses responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import httptools

MOST_OF_HEAD = 1 << 16
"""Maximum bytes before the body; a body may have as many again, and one for each of its own, in
sizes of chunks, their extensions and trailers: parsers keep or skip those without any bound."""
LOOK_EVERY = 1 << 14
"""Bytes that are parsed before the bounds are looked at: 256 kB in chunks of a byte take 30 ms."""
Take = Callable[[bytes], object]
"""Receives parts of a body; an exception ends the exchange."""


class NoAnswerError(ConnectionError):
    """The connection was closed before the first byte of a response."""


class HttpConnection(asyncio.Protocol):
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
