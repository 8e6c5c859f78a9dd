"""Writes the answers of one HTTP connection, and bounds those that its client does not read."""

# ruff: noqa: D102 - uvicorn and asyncio document what is overridden here

from __future__ import annotations

import asyncio
import random
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from headroom_server.connection import STATE_KEY, Connection
from headroom_server.web.connections.http_options import HttpOptions
from headroom_server.web.connections.socket_stream import SocketStream, bound_socket
from headroom_server.web.inference.direct import Exchange
from headroom_server.web.inference.response_heads import CLOSE_LINE

UNSENT_BYTES = 16 * 1024
"""Bytes of answers that a connection may hold before they count, so 16 MiB for a client's 1024."""


class AnsweringProtocol(HttpToolsProtocol):
    """One connection; requests find its `Connection` in the ASGI state."""

    _receiving = False
    """A request has begun and is not complete."""
    _lingering = False
    """Closed, except that what still arrives is read and dropped."""
    _send_timer: asyncio.TimerHandle | None = None
    _unsent = 0
    """Bytes that are counted as being sent."""
    _running: RequestResponseCycle | Exchange[Any] | None = None
    """The last request that is served, by ASGI or without it."""
    _streaming: SocketStream | None = None
    """The response being streamed without ASGI."""
    _bounded = False
    """The kernel's buffer is bounded, since something was streamed."""

    def __init__(self, options: HttpOptions, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._options = options

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        age_s = self._options.max_age_s * random.uniform(0.75, 1.25)  # noqa: S311 - jitter
        client = self.client[0] if self.client else ""
        self._connection = Connection(self.loop.time() + age_s, client)
        self._connection.answer = self._answer
        self._connection.stream = self._stream
        self.app_state = {**self.app_state, STATE_KEY: self._connection}
        transport.set_write_buffer_limits(high=UNSENT_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True  # uvicorn marks the last request, which may wait
            self._running.message_event.set()
        drop_body(self._running)
        drop_body(self.cycle)
        self._count_unsent(0)
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

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _answer(self, head: bytes, body: bytes, close: bool) -> bool:
        # replaces uvicorn's two sends by one write, without checking its own headers
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
            self._close()
        self.on_response_complete()

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
            self._close()
        self.on_response_complete()

    def _close(self) -> None:
        """Close; a client that still sends can read its answer first.

        A socket that is closed with unread bytes is reset, which discards the answer at the client
        (RFC 9112, section 9.6). The receive timer ends the wait for the client's own close.
        """
        if not self._receiving or self.transport.is_closing():
            self.transport.close()
        elif not self._lingering:
            self._lingering = True
            self.transport.write_eof()
            self.flow.resume_reading()

    def _count_unsent(self, size: int) -> None:
        if self._unsent:
            self._options.sending.give_back(self._connection.client, self._unsent)
        if size:
            self._options.sending.take(self._connection.client, size)
        self._unsent = size
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None


def drop_body(cycle: RequestResponseCycle | Exchange[Any] | None) -> None:
    """Drop what had arrived of a request: a refused one leaves it to the garbage collector."""
    if cycle is not None:
        cycle.body = b""
