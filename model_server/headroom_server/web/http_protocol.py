"""HTTP/1.1 of uvicorn, with limits on the size and the duration of requests.

uvicorn alone waits forever for the rest of a request and accepts headers of any size.
"""

# ruff: noqa: D102 - uvicorn and asyncio document what is overridden here

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import httptools
import orjson
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from headroom_server.connection import STATE_KEY, Connection
from headroom_server.errors import QueueFullError
from headroom_server.web.direct import Exchange, FastPath
from headroom_server.web.inference import CLOSE_LINE
from headroom_server.web.known_heads import Head, KnownHeads
from headroom_server.web.read_turns import ReadTurns
from headroom_server.web.receiving import Receipt, Shares, receiving_bytes
from headroom_server.web.socket_stream import SocketStream, bound_socket

MAX_HEAD_BYTES = 64 * 1024
"""Request line and headers. The first read (up to 128 KiB) is parsed before it is counted."""
MAX_HEADERS = 256
"""A header of 6 bytes takes 135 in memory."""
MAX_PIPELINED = 32
"""Requests that wait behind the one that is being answered: one read can have thousands, which take
5 kB each."""

UNSENT_BYTES = 16 * 1024
"""Bytes of answers that a connection may hold before they count, so 16 MiB for a client's 1024."""

AGAIN_LINE = dict.fromkeys((429, 503), b"retry-after: 1\r\n")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Options that all connections of a server share."""

    max_age_s: float
    """Mean age at which a response closes its connection; each varies by up to a quarter."""
    receive_timeout_s: float
    """A request must be complete this long after its first byte."""
    direct: FastPath | None = None
    """Serves requests without ASGI where it can; None: every request goes through ASGI."""
    known_heads: KnownHeads = field(default_factory=KnownHeads)
    receiving: Shares = field(default_factory=lambda: Shares(receiving_bytes(0)))
    """Bytes that are arriving."""
    connections: Shares = field(default_factory=lambda: Shares(2048))
    """Open connections."""
    sending: Shares = field(default_factory=lambda: Shares(receiving_bytes(0)))
    """Bytes of answers that their clients have not read yet."""
    reads: ReadTurns = field(default_factory=ReadTurns)
    """Reads of all sockets."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection; requests find its `Connection` in the ASGI state.

    Overrides and reads private parts of uvicorn, which is therefore pinned to one minor version;
    tests/server/test_uvicorn_contract.py lists everything that is used.
    """

    _receiving = False
    """A request has begun and is not complete."""
    _head_open = False
    """Its headers are not complete either."""
    _head_bytes = 0
    _receive_timer: asyncio.TimerHandle | None = None
    _send_timer: asyncio.TimerHandle | None = None
    _unsent = 0
    """Bytes that are counted as being sent."""
    _exchange: Exchange[Any] | None = None
    """The request being received, if it bypasses ASGI."""
    _running: RequestResponseCycle | Exchange[Any] | None = None
    """The last request that is served, by ASGI or without it."""
    _last_head: Head | None = None
    """The head of the last request that bypassed ASGI."""
    _streaming: SocketStream | None = None
    """The response being streamed without ASGI."""
    _bounded = False
    """The kernel's buffer is bounded, since something was streamed."""
    _rejection: tuple[int, str] | None = None
    """Status and message for the last request, while earlier requests still await responses."""

    def __init__(self, options: HttpOptions, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._options = options
        self._direct = options.direct

    @property
    def read_paused(self) -> bool:
        """Whether this connection is not read until the application has taken what arrived."""
        return self.flow.read_paused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        age_s = self._options.max_age_s * random.uniform(0.75, 1.25)  # noqa: S311 - jitter
        client = self.client[0] if self.client else ""
        self._connection = Connection(self.loop.time() + age_s, client)
        self._receipt = Receipt(self._options.receiving, client)
        self._connection.answer = self._answer
        self._connection.stream = self._stream
        self.app_state = {**self.app_state, STATE_KEY: self._connection}
        self._idle_since_s = self.loop.time()
        self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._check_idle)
        transport.set_write_buffer_limits(high=UNSENT_BYTES)
        admitted = self._options.connections.fits(client, 1)
        self._options.connections.take(client, 1)
        if not admitted:
            self._refuse(503, "this replica has too many connections, or too many of this client")

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True  # uvicorn marks the last request, which may wait
            self._running.message_event.set()
        _drop_body(self._running)
        _drop_body(self.cycle)
        self._idle_timer.cancel()
        self._stop_receive_timer()
        self._count_unsent(0)
        self._receipt.close()
        self._options.connections.give_back(self._connection.client, 1)
        if self._streaming is not None:
            self._streaming.lost()
            self._streaming = None
        self._connection.lost()
        self._connection.answer = self._connection.stream = None

    def resume_writing(self) -> None:
        super().resume_writing()
        self._count_unsent(0)
        if self._streaming is not None:
            self._streaming.on_writable()

    def pause_writing(self) -> None:
        super().pause_writing()
        size, sending = self.transport.get_write_buffer_size(), self._options.sending
        if sending.held and not sending.fits(self._connection.client, size):
            self.transport.abort()  # its client does not read, and there are too many of these
            return
        self._count_unsent(size)
        self._send_timer = self.loop.call_later(
            self._options.receive_timeout_s, self.transport.abort
        )

    def data_received(self, data: bytes) -> None:
        if self._rejection is not None:
            return
        begins = self._direct is not None and not self._receiving
        if begins and self._serve_known(data):
            return
        self._last_head = None
        super().data_received(data)
        if begins and self._last_head is not None:
            self._options.known_heads.learn(data, self._last_head)
        if not self._receiving:
            if self._receive_timer is not None:
                self._stop_receive_timer()
        elif not self.transport.is_closing():
            if self._receive_timer is None:
                self._start_receive_timer()
            if self._head_open:
                self._head_bytes += len(data)
                self._check_head(self._head_bytes)
            if self._head_open or self._exchange is not None:
                try:
                    self._receipt.grow(len(data))
                except QueueFullError as error:
                    self._reject(429, error.message)

    def on_message_begin(self) -> None:
        # uvicorn also builds the ASGI scope here; on_headers_complete does if ASGI is needed
        if len(self.pipeline) >= MAX_PIPELINED:
            self._reject(
                429, f"at most {MAX_PIPELINED} requests may wait on a connection; got more"
            )
            raise httptools.HttpParserError  # ends the parsing of this read
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._receiving = self._head_open = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        # the head is open until its request exists: a target that cannot be parsed raises
        if len(self.headers) > MAX_HEADERS // 4 and not self._check_head(
            len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        ):
            raise httptools.HttpParserError
        self._exchange = exchange = self._direct_exchange()
        if exchange is not None:
            self.cycle = exchange  # type: ignore[assignment]
            self._head_open = False
            return
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers += headers  # the list that the scope holds
        super().on_headers_complete()
        self._head_open = False

    def on_body(self, body: bytes) -> None:
        if self._exchange is None:
            super().on_body(body)
        else:
            self._exchange.body += body

    def on_message_complete(self) -> None:
        self._receiving = False
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            super().on_message_complete()
        else:
            assert self._direct is not None
            self._last_head = exchange.head
            self._running = exchange
            self._direct.serve(exchange, self._connection, self._write)

    def on_response_complete(self) -> None:
        # like uvicorn's, but with one idle timer per connection instead of one per response
        more = bool(self.pipeline)
        self.server_state.total_requests += 1
        _drop_body(self._running)
        if not self.transport.is_closing():
            self._idle_since_s = self.loop.time()
            self.flow.resume_reading()
            if more:
                self._start_asgi_task(*self.pipeline.pop())
        if self._rejection is not None and not more:
            self._refuse(*self._rejection)

    def shutdown(self) -> None:
        # A request whose headers are arriving is still received; since the server drains, its
        # response closes the connection.
        if not self._head_open:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        self._reject(400, "the request must be valid HTTP/1.1")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _answer(self, head: bytes, body: bytes, close: bool) -> bool:
        # replaces uvicorn's two sends by one write, without checking our own headers
        cycle = self._running
        assert cycle is not None
        if self.flow.write_paused or cycle.response_started:
            return False
        self._write(cycle, head, body, close)
        cycle.message_event.set()
        return True

    def _stream(self, head: bytes, close: bool) -> SocketStream:
        # replaces uvicorn's send per piece, which takes a task's turn of the loop each
        cycle = self._running
        assert cycle is not None
        chunked = isinstance(cycle, Exchange) or cycle.scope["http_version"] != "1.0"
        if close or not chunked:
            cycle.keep_alive = False
        cycle.response_started = True
        if not self._bounded:
            self._bounded = True
            bound_socket(self.transport)
        self._streaming = SocketStream(self.transport, head, chunked, cycle, self._streamed)
        return self._streaming

    def _streamed(self, cycle: RequestResponseCycle | Exchange[Any]) -> None:
        """Go on after a complete stream."""
        self._streaming = None
        cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _serve_known(self, data: bytes) -> bool:
        """Serve `data` without parsing it, if it is one request whose head is known."""
        assert self._direct is not None
        parts = self._options.known_heads.split(data) if self._may_write() else None
        exchange = None if parts is None else self._direct.begin(parts[0])
        if parts is None or exchange is None:
            return False
        self.cycle = exchange  # type: ignore[assignment]
        self._running = exchange
        exchange.body = parts[1]
        self._direct.serve(exchange, self._connection, self._write)
        return True

    def _may_write(self) -> bool:
        """Whether a response could be written now: none is due before it, the client reads."""
        before = self.cycle
        return (before is None or before.response_complete) and not self.flow.write_paused

    def _direct_exchange(self) -> Exchange[Any] | None:
        """The request whose headers are complete, if it can bypass ASGI."""
        parser, direct = self.parser, self._direct
        if (
            direct is None
            or self.expect_100_continue
            or not self._may_write()
            or parser.get_method() != b"POST"
            or parser.get_http_version() != "1.1"
            or parser.should_upgrade()
        ):
            return None
        keep_alive = parser.should_keep_alive()
        head = direct.head(self.url, self.headers, keep_alive=keep_alive)
        return None if head is None else direct.begin(head)

    def _write(
        self, cycle: RequestResponseCycle | Exchange[Any], head: bytes, body: bytes, close: bool
    ) -> None:
        if close or not cycle.keep_alive:
            cycle.keep_alive = False
            head += CLOSE_LINE
        if not (cycle.disconnected or self.transport.is_closing()):
            self.transport.write(b"%b\r\n%b" % (head, body))
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _count_unsent(self, size: int) -> None:
        if self._unsent:
            self._options.sending.give_back(self._connection.client, self._unsent)
        if size:
            self._options.sending.take(self._connection.client, size)
        self._unsent = size
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _check_idle(self) -> None:
        if self.transport.is_closing():
            self.transport.abort()  # its client does not read the last answer
            return
        now_s = self.loop.time()
        busy = self._receiving or not (self.cycle is None or self.cycle.response_complete)
        since_s = now_s if busy else self._idle_since_s
        left_s = since_s + self.timeout_keep_alive - now_s
        if left_s > 0.0:
            self._idle_timer = self.loop.call_later(left_s, self._check_idle)
        else:
            self.timeout_keep_alive_handler()

    def _start_receive_timer(self) -> None:
        timeout_s = self._options.receive_timeout_s
        self._receive_timer = self.loop.call_later(timeout_s, self._on_receive_timeout)

    def _stop_receive_timer(self) -> None:
        if self._receive_timer is not None:
            self._receive_timer.cancel()
            self._receive_timer = None
            self._receipt.close()

    def _on_receive_timeout(self) -> None:
        self._receive_timer = None
        answering = self.cycle is not None and not self.cycle.response_complete
        if self.transport.is_closing():
            return
        if self.pipeline or (self._head_open and answering):
            # an earlier request of this connection still awaits its response
            self._start_receive_timer()
        else:
            timeout_s = self._options.receive_timeout_s
            self._refuse(408, f"the request must be complete within {timeout_s:g} s")

    def _check_head(self, size: int) -> bool:
        """Refuse a head that is too large; return whether it is not."""
        if size > MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
            self._reject(
                431,
                f"headers must have at most {MAX_HEAD_BYTES} bytes, and be at most {MAX_HEADERS}",
            )
            self.headers = []  # megabytes, which the next garbage collection would find
            return False
        return True

    def _reject(self, status: int, message: str) -> None:
        """Refuse the last request, once every request before it has its response."""
        if self._rejection is not None or self.transport.is_closing():
            return
        begun = self._receiving and not self._head_open
        if begun and self.pipeline:
            self.pipeline.popleft()  # the request itself: it will never be complete
        elif begun or self.cycle is None or self.cycle.response_complete:
            self._refuse(status, message)
            return
        self._rejection = (status, message)

    def _refuse(self, status: int, message: str) -> None:
        body = orjson.dumps({"error": message})
        begun = self._receiving and not self._head_open
        if not (begun and self.cycle.response_started):
            self.transport.write(
                b"%scontent-type: application/json\r\ncontent-length: %d\r\n%s"
                b"connection: close\r\n\r\n%s"
                % (STATUS_LINE[status], len(body), AGAIN_LINE.get(status, b""), body)
            )
        self.transport.close()
        if begun:  # the application waits for a body that is never completed
            self.cycle.disconnected = True
            self.cycle.message_event.set()


def _drop_body(cycle: RequestResponseCycle | Exchange[Any] | None) -> None:
    # a refused request leaves what had arrived to its cycle, and that to the garbage collector
    if cycle is not None:
        cycle.body = b""
