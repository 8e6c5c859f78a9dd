"""A client's connection to a front: one usual request at a time, everything else is handed over.

The head is looked for, parsed and judged when it is whole; the body follows by its length. What is
not usual (another method, chunks, large bodies, an unknown model, no HTTP, a slow client) has been
read by then, and goes with the connection to the device process, which serves that one request and
gives the connection back.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple, Protocol

import httptools

from headroom_server.connection import Connection, Headers
from headroom_server.web.direct import Direct, Exchange
from headroom_server.web.heads import CLOSE
from headroom_server.web.http_protocol import MAX_HEAD_BYTES

_END = b"\r\n\r\n"
_FRAMED_OTHERWISE = {b"transfer-encoding", b"expect", b"upgrade"}
SLOW_S = 1.0
"""A request that takes longer to come is the device process's, with its bounds."""


class Bounds(NamedTuple):
    """On clients."""

    max_body_bytes: int
    max_age_s: float
    idle_s: float


class Desk(Protocol):
    """Whom a connection belongs to."""

    connections: set[FrontConnection]
    direct: Direct

    def hand_over(self, transport: asyncio.Transport, retire_at_s: float, data: bytes) -> None:
        """Give it to the device process."""

    def ended(self) -> None:
        """A connection is over."""


class FrontConnection(asyncio.Protocol):
    """HTTP/1.1 as nearly all clients of a model speak it."""

    _transport: asyncio.Transport

    def __init__(self, desk: Desk, retire_at_s: float) -> None:
        self._desk = desk
        self._loop = asyncio.get_running_loop()
        self._connection = Connection(retire_at_s)
        self._parser = httptools.HttpRequestParser(self)
        self._buffer = bytearray()
        self._exchange: Exchange | None = None
        """Being received or answered."""
        self._answering = False
        self._head = b""
        self._body_bytes = 0
        self._moving = self._write_paused = self._read_paused = False
        self._since_s = self._loop.time()
        """Since when it is quiet, or a request is being received."""
        self._url = b""
        self._headers: Headers = []

    # ---- as the loop calls it

    def connection_made(self, transport: Any) -> None:
        """A client is there."""
        self._transport = transport
        self._desk.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has left, was sent away, or was handed over."""
        self._desk.connections.discard(self)
        if self._exchange is not None:
            self._exchange.disconnected = True
        self._connection.lost()
        self._desk.ended()

    def data_received(self, data: bytes) -> None:
        """Some of a request, or of several."""
        if not self._buffer and not self._answering:
            self._since_s = self._loop.time()
        self._buffer += data
        self._proceed()
        if self._answering and len(self._buffer) > MAX_HEAD_BYTES and not self._read_paused:
            self._read_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """As uvicorn: who ends half of a connection ends it."""
        return False

    def pause_writing(self) -> None:
        """The client reads slowly."""
        self._write_paused = True

    def resume_writing(self) -> None:
        """It has read."""
        self._write_paused = False
        self._proceed()

    # ---- as the parser calls it

    def on_url(self, url: bytes) -> None:
        """The target, or a piece of it."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._headers.append((name.lower(), value))

    # ---- requests

    def _proceed(self) -> None:
        """The next request, as far as it has come."""
        if self._answering or self._moving or self._write_paused or not self._buffer:
            return
        if self._transport.is_closing():
            return
        if self._exchange is None and not self._begin():
            return
        exchange, length = self._exchange, self._body_bytes
        if exchange is None or len(self._buffer) < length:
            return
        exchange.body = bytes(self._buffer[:length])
        del self._buffer[:length]
        self._parser.feed_data(exchange.body)
        self._answering = True
        self._desk.direct.serve(exchange, self._connection, self._respond)

    def _begin(self) -> bool:
        """Judge a head; whether it is whole and usual."""
        end = self._buffer.find(_END) + len(_END)
        if end < len(_END):
            if len(self._buffer) > MAX_HEAD_BYTES:
                self._hand_over()
            return False
        self._url, self._headers, parser = b"", [], self._parser
        try:
            parser.feed_data(memoryview(self._buffer)[:end].tobytes())
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._hand_over()
            return False
        usual = (
            end <= MAX_HEAD_BYTES
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and _FRAMED_OTHERWISE.isdisjoint([name for name, _ in self._headers])
        )
        if usual:
            direct, keep_alive = self._desk.direct, parser.should_keep_alive()
            head = direct.head(self._url, self._headers, keep_alive=keep_alive)
            exchange = None if head is None else direct.begin(head)
            if exchange is not None:
                self._exchange = exchange
                self._body_bytes = exchange.head.body_bytes
                self._head = bytes(self._buffer[:end])
                del self._buffer[:end]
                return True
        self._hand_over()
        return False

    def _respond(self, exchange: Exchange, head: bytes, body: bytes, close: bool) -> None:
        self._exchange, self._answering = None, False
        if exchange.disconnected or self._transport.is_closing():
            return
        close = close or not exchange.keep_alive
        self._transport.write(b"%b%b\r\n%b" % (head, CLOSE if close else b"", body))
        self._since_s = self._loop.time()
        if close:
            self._transport.close()
            return
        if self._read_paused:
            self._read_paused = False
            self._transport.resume_reading()
        if self._buffer:
            self._loop.call_soon(self._proceed)

    # ---- connections

    def _hand_over(self) -> None:
        """With what was read of the request, when the answers before it have left."""
        self._moving = True
        if self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size():
            self._loop.call_later(0.005, self._hand_over)
            return
        whole = self._head + bytes(self._buffer) if self._exchange else bytes(self._buffer)
        self._exchange = None
        self._buffer.clear()
        self._desk.hand_over(self._transport, self._connection.retire_at_s, whole)

    def look(self, now_s: float, idle_s: float) -> None:
        """To be called now and then: slow requests move, idle connections end."""
        if self._answering or self._moving:
            return
        if self._exchange is not None or self._buffer:
            if now_s - self._since_s > SLOW_S and not self._write_paused:
                self._hand_over()
        elif now_s - self._since_s > idle_s and not self._write_paused:
            self._transport.close()
