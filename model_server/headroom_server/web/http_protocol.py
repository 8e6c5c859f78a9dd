"""HTTP/1.1 of uvicorn, with bounds on what a client may send and how long it may take for it.

uvicorn waits for ever for the rest of a request, and holds headers of any size.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from headroom_server.connection import STATE_KEY, Connection
from headroom_server.web.direct import Direct, Exchange
from headroom_server.web.heads import CLOSE
from headroom_server.web.known_heads import Head, KnownHeads

MAX_HEAD_BYTES = 64 * 1024
"""Request line and headers. What comes in one read (256 KiB) is not counted before it is parsed."""


def bounded_protocol(
    max_age_s: float, receive_timeout_s: float, direct: Direct | None = None
) -> type[HttpToolsProtocol]:
    """The protocol of each connection; the connection stands in the ASGI state.

    A request has to be complete `receive_timeout_s` after its first byte. What `direct` takes
    passes ASGI by.
    """
    known = KnownHeads()

    class BoundedProtocol(HttpToolsProtocol):
        _receiving = False
        """A request has begun and is not complete."""
        _head_open = False
        """Its headers are not complete either."""
        _head_bytes = 0
        _receive_timer: asyncio.TimerHandle | None = None
        _exchange: Exchange | None = None
        """What is received to pass ASGI by."""
        _taken: Head | None = None
        """Of what was last received so."""
        _rejection: tuple[int, str] | None = None
        """Status and message for what came last, while answers before it are still owed."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            age_s = max_age_s * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, no secret
            self._connection = Connection(self.loop.time() + age_s)
            self._connection.answer = self._answer
            self.app_state = {**self.app_state, STATE_KEY: self._connection}
            self._quiet_since_s = self.loop.time()
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._check_idle)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._idle_timer.cancel()
            self._stop_receive_timer()
            self._connection.lost()
            self._connection.answer = None

        def data_received(self, data: bytes) -> None:
            if self._rejection is not None:
                return
            begins = direct is not None and not self._receiving
            if begins and self._serve_known(data):
                return
            self._taken = None
            super().data_received(data)
            if begins and self._taken is not None:
                known.learn(data, self._taken)
            if not self._receiving:
                if self._receive_timer is not None:
                    self._stop_receive_timer()
            elif not self.transport.is_closing():
                if self._receive_timer is None:
                    self._start_receive_timer()
                if self._head_open:
                    self._head_bytes += len(data)
                    if self._head_bytes > MAX_HEAD_BYTES:
                        self._reject(431, f"headers hold at most {MAX_HEAD_BYTES} bytes; got more")

        def on_message_begin(self) -> None:
            # of uvicorn's, what ASGI alone needs waits until it is known to be needed
            self.url, self.headers, self.expect_100_continue = b"", [], False
            self._receiving = self._head_open = True
            self._head_bytes = 0

        def on_headers_complete(self) -> None:
            self._head_open = False
            self._exchange = exchange = self._passing_by()
            if exchange is not None:
                self.cycle = exchange  # type: ignore[assignment]
                return
            url, headers, expects = self.url, self.headers, self.expect_100_continue
            super().on_message_begin()
            self.url, self.expect_100_continue = url, expects
            self.headers += headers  # the list that the scope holds
            super().on_headers_complete()

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
                assert direct is not None
                self._taken = exchange.head
                direct.serve(exchange, self._connection, self._write)

        def on_response_complete(self) -> None:
            # As uvicorn's, with one timer per connection in place of one per answer.
            owed = bool(self.pipeline)
            self.server_state.total_requests += 1
            if not self.transport.is_closing():
                self._quiet_since_s = self.loop.time()
                self.flow.resume_reading()
                if owed:
                    self._start_asgi_task(*self.pipeline.pop())
            if self._rejection is not None and not owed:
                self._refuse(*self._rejection)

        def shutdown(self) -> None:
            # A request whose headers are on their way is received, and its answer closes the
            # connection, since the server drains.
            if not self._head_open:
                super().shutdown()

        def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
            self._running = cycle
            super()._start_asgi_task(cycle, app)

        def _answer(self, head: bytes, body: bytes, close: bool) -> bool:
            # As uvicorn's two sends, in one write and without checking our own headers.
            cycle = self._running
            if self.flow.write_paused or cycle.response_started:
                return False
            self._write(cycle, head, body, close)
            cycle.message_event.set()
            return True

        def _serve_known(self, data: bytes) -> bool:
            """Serve what is one whole request whose head was read before; whether it is."""
            assert direct is not None
            whole = known.split(data) if self._at_rest() else None
            exchange = None if whole is None else direct.begin(whole[0])
            if whole is None or exchange is None:
                return False
            self.cycle = exchange  # type: ignore[assignment]
            exchange.body = whole[1]
            direct.serve(exchange, self._connection, self._write)
            return True

        def _at_rest(self) -> bool:
            before = self.cycle
            return (before is None or before.response_complete) and not self.flow.write_paused

        def _passing_by(self) -> Exchange | None:
            parser = self.parser
            if (
                direct is None
                or self.expect_100_continue
                or not self._at_rest()
                or parser.get_method() != b"POST"
                or parser.get_http_version() != "1.1"
                or parser.should_upgrade()
            ):
                return None
            keep_alive = parser.should_keep_alive()
            head = direct.head(self.url, self.headers, keep_alive=keep_alive)
            return None if head is None else direct.begin(head)

        def _write(
            self,
            cycle: RequestResponseCycle | Exchange,
            head: bytes,
            body: bytes,
            close: bool,
        ) -> None:
            if close or not cycle.keep_alive:
                cycle.keep_alive = False
                head += CLOSE
            if not (cycle.disconnected or self.transport.is_closing()):
                self.transport.write(b"%b\r\n%b" % (head, body))
            cycle.response_started = cycle.response_complete = True
            if not cycle.keep_alive:
                self.transport.close()
            self.on_response_complete()

        def _check_idle(self) -> None:
            now_s = self.loop.time()
            busy = self._receiving or not (self.cycle is None or self.cycle.response_complete)
            since_s = now_s if busy else self._quiet_since_s
            left_s = since_s + self.timeout_keep_alive - now_s
            if left_s > 0.0:
                self._idle_timer = self.loop.call_later(left_s, self._check_idle)
            else:
                self.timeout_keep_alive_handler()

        def send_400_response(self, msg: str) -> None:
            self._reject(400, f"not HTTP/1.1: {msg}")

        def _start_receive_timer(self) -> None:
            self._receive_timer = self.loop.call_later(receive_timeout_s, self._too_slow)

        def _stop_receive_timer(self) -> None:
            if self._receive_timer is not None:
                self._receive_timer.cancel()
                self._receive_timer = None

        def _too_slow(self) -> None:
            self._receive_timer = None
            answering = self.cycle is not None and not self.cycle.response_complete
            if self.transport.is_closing():
                return
            if self.pipeline or (self._head_open and answering):
                # an earlier request of this connection is still owed its answer
                self._start_receive_timer()
            else:
                self._refuse(408, f"the request was not complete after {receive_timeout_s:g} s")

        def _reject(self, status: int, message: str) -> None:
            """Refuse what came last, once everything before it has its answer."""
            if self._rejection is not None or self.transport.is_closing():
                return
            begun = self._receiving and not self._head_open
            if begun and self.pipeline:
                self.pipeline.popleft()  # itself: it will never be complete
            elif begun or self.cycle is None or self.cycle.response_complete:
                self._refuse(status, message)
                return
            self._rejection = (status, message)

        def _refuse(self, status: int, message: str) -> None:
            body = orjson.dumps({"error": message})
            begun = self._receiving and not self._head_open
            if not (begun and self.cycle.response_started):
                self.transport.write(
                    b"%scontent-type: application/json\r\ncontent-length: %d\r\n"
                    b"connection: close\r\n\r\n%s" % (STATUS_LINE[status], len(body), body)
                )
            self.transport.close()
            if begun:  # whoever waits for the rest of it need not answer any more
                self.cycle.disconnected = True
                self.cycle.message_event.set()

    return BoundedProtocol
