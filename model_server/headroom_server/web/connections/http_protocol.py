"""HTTP/1.1 of uvicorn, bounded: reads the requests of a connection and serves them in order.

`http_refusals` has the bounds on what arrives, `http_answers` writes. uvicorn calls what is public.
"""

# ruff: noqa: D102 - uvicorn and asyncio document what is overridden here

from __future__ import annotations

from typing import Any

import httptools

from headroom_server.errors import QueueFullError
from headroom_server.web.connections.closing import RequestTransport
from headroom_server.web.connections.http_answers import drop_body
from headroom_server.web.connections.http_options import HttpOptions
from headroom_server.web.connections.http_refusals import MAX_HEADERS, RefusingProtocol
from headroom_server.web.connections.upgrade_offers import without_offer
from headroom_server.web.inference.direct import Exchange
from headroom_server.web.inference.known_heads import Head

MAX_PIPELINED = 32
"""Requests that wait behind the one that is being answered: one read can have thousands, which take
5 kB each."""


class BoundedProtocol(RefusingProtocol):
    """One connection; requests find its `Connection` in the ASGI state.

    It and its bases override and read private parts of uvicorn, which is therefore pinned to one
    minor version; tests/server/test_uvicorn_contract.py lists everything that is used.
    """

    _head_bytes = 0
    _exchange: Exchange[Any] | None = None
    """The request being received, if it bypasses ASGI."""
    _last_head: Head | None = None
    """The head of the last request that bypassed ASGI."""
    _declined = b""
    """The head of a request that offers another protocol, without the offer: to be parsed again."""

    def __init__(self, options: HttpOptions, **arguments: Any) -> None:
        super().__init__(options, **arguments)
        self._direct = options.direct

    @property
    def read_paused(self) -> bool:
        """Whether this connection is not read until the application has taken what arrived."""
        return self.flow.read_paused

    def data_received(self, data: bytes) -> None:
        if self._rejection is not None or self._lingering:
            return
        begins = self._direct is not None and not self._receiving
        if begins and self._serve_known(data):
            return
        self._last_head = None
        self._parse(data)
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
                    self._reservation.grow(len(data))
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
        if self.parser.should_upgrade():
            method, version = self.parser.get_method(), self.parser.get_http_version()
            self._declined = without_offer(method, self.url, version, self.headers)
            if self._declined:
                return
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
        self.cycle.transport = RequestTransport(self.transport, self._close)  # type: ignore[assignment]
        self._head_open = False

    def on_body(self, body: bytes) -> None:
        if self._exchange is None:
            super().on_body(body)
        else:
            self._exchange.body += body

    def on_message_complete(self) -> None:
        if self._declined:
            return
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
        drop_body(self._running)
        if not (self._lingering or self.transport.is_closing()):
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

    def _parse(self, data: bytes) -> None:
        """Parse what arrived; the parser would take the body after an offer for the offer's."""
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserError:
                self._reject(400, "the request must be valid HTTP/1.1")
            except httptools.HttpParserUpgrade as offer:
                if self._declined:
                    # another one: this one may have seen the last request of its connection
                    self.parser = httptools.HttpRequestParser(self)
                    self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
                    data, self._declined = self._declined + data[offer.args[0] :], b""
                    continue
            return

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
        """Return whether a response could be written now: it is the next, and the client reads."""
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
