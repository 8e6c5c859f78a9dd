"""A streamed response over a connection's transport: one write per piece, framed by hand."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headroom_server.web.inference.response_heads import CLOSE_LINE
from headroom_server.web.inference.response_stream import SOCKET_BYTES, UNSENT_BYTES, nothing

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from headroom_server.web.inference.direct import Exchange


def bound_socket(transport: asyncio.Transport) -> None:
    """Bound what the kernel holds for a client that does not read: it would grow to megabytes."""
    plain = transport.get_extra_info("socket")
    if plain is not None:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)


CHUNKED_LINE = b"transfer-encoding: chunked\r\n"


class SocketStream:
    """One response; see `ResponseStream`."""

    def __init__(
        self,
        transport: asyncio.Transport,
        head: bytes,
        chunked: bool,
        cycle: RequestResponseCycle | Exchange[Any],
        on_end: Callable[[Any], None],
    ) -> None:
        self.on_writable: Callable[[], None] = nothing
        self._transport = transport
        self._chunked = chunked
        self._cycle = cycle
        self._on_end = on_end
        lines = (CHUNKED_LINE if chunked else b"") + (b"" if cycle.keep_alive else CLOSE_LINE)
        self._head = b"%b%b\r\n" % (head, lines)
        self._done = asyncio.get_running_loop().create_future()

    @property
    def paused(self) -> bool:
        """Whether the client does not read."""
        return self._transport.get_write_buffer_size() > UNSENT_BYTES

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the kernel has not taken."""
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Write a piece."""
        self._transport.write(self._framed(data))

    def end(self, data: bytes = b"") -> None:
        """Write the last piece, and complete the response."""
        if self._done.done():
            return
        last = b"0\r\n\r\n" if self._chunked else b""
        self._transport.write(self._framed(data) + last)
        self._done.set_result(None)
        self._on_end(self._cycle)

    def _framed(self, data: bytes) -> bytes:
        if self._chunked and data:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        if self._head:
            data, self._head = self._head + data, b""
        return data

    def abort(self) -> None:
        """Close the connection."""
        self._transport.abort()

    def lost(self) -> None:
        """The connection is closed."""
        self.on_writable = nothing
        if not self._done.done():
            self._done.set_result(None)

    async def wait(self) -> None:
        """Return when the response is complete or lost."""
        await self._done
