"""Bounds an HTTP connection: what is too much or too slow is refused, what is idle is closed.

uvicorn alone waits forever for the rest of a request and accepts headers of any size.
"""

# ruff: noqa: D102 - uvicorn and asyncio document what is overridden here

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from headroom_server.web.connections.http_answers import AnsweringProtocol
from headroom_server.web.shared_bound import Reservation

MAX_HEAD_BYTES = 64 * 1024
"""Request line and headers. The first read (up to 128 KiB) is parsed before it is counted."""
MAX_HEADERS = 256
"""A header of 6 bytes takes 135 in memory."""

AGAIN_LINE = dict.fromkeys((429, 503), b"retry-after: 1\r\n")


class RefusingProtocol(AnsweringProtocol):
    """One connection within its bounds."""

    _head_open = False
    """Its headers are not complete either."""
    _receive_timer: asyncio.TimerHandle | None = None
    _rejection: tuple[int, str] | None = None
    """Status and message for the last request, while earlier requests still await responses."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        client, connections = self._connection.client, self._options.connections
        self._reservation = Reservation(self._options.receiving, client)
        self._idle_since_s = self.loop.time()
        self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._check_idle)
        admitted = connections.fits(client, 1)
        connections.take(client, 1)
        if not admitted:
            self._refuse(503, "this replica has too many connections, or too many of this client")

    def connection_lost(self, exc: Exception | None) -> None:
        self._idle_timer.cancel()
        self._stop_receive_timer()
        self._reservation.close()
        self._options.connections.give_back(self._connection.client, 1)
        super().connection_lost(exc)

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
            self._reservation.close()

    def _on_receive_timeout(self) -> None:
        self._receive_timer = None
        answering = self.cycle is not None and not self.cycle.response_complete
        if self._lingering:
            self.transport.abort()
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
                f"there must be at most {MAX_HEADERS} headers, of {MAX_HEAD_BYTES} bytes in total",
            )
            self.headers = []  # megabytes, which the next garbage collection would find
            return False
        return True

    def _reject(self, status: int, message: str) -> None:
        """Refuse the last request, once every request before it has its response."""
        if self._rejection is not None or self._lingering or self.transport.is_closing():
            return
        begun = self._receiving and not self._head_open
        if begun and self.pipeline:
            self.pipeline.popleft()  # the request itself: it will never be complete
        elif begun or self.cycle is None or self.cycle.response_complete:
            self._refuse(status, message)
            return
        self._rejection = (status, message)

    def _refuse(self, status: int, message: str) -> None:
        body = self._options.refusal(status, message)
        begun = self._receiving and not self._head_open
        if not (begun and self.cycle.response_started):
            self.transport.write(
                b"%scontent-type: application/json\r\ncontent-length: %d\r\n%s"
                b"connection: close\r\n\r\n%s"
                % (STATUS_LINE[status], len(body), AGAIN_LINE.get(status, b""), body)
            )
        if status == 408:
            self.transport.close()  # it sends too slowly for another wait
        else:
            self._close()
        if begun:  # the application waits for a body that is never completed
            self.cycle.disconnected = True
            self.cycle.message_event.set()
