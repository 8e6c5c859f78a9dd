"""Passes bytes between clients and a server in this process that cannot bound its own clients.

gRPC bounds its connections in all. In front of it each address has a share, and the server learns
which client a connection is of from the port that the relay connects from.
"""

from __future__ import annotations

import asyncio
import socket
from typing import cast

from headroom.bounded_listener import BoundedListener, owner

LOOPBACK = "127.0.0.1"
BUFFERED_BYTES = 64 << 10
"""Read buffer of a connection, in each direction."""


class Relay:
    """Accepts at most this many connections, and passes each on to a port of this process."""

    def __init__(self, most: int) -> None:
        self.listener = BoundedListener(most)
        self._clients: dict[int, str] = {}
        """Addresses by the port from which their connection is passed on."""

    def client(self, port: int) -> str | None:
        """Return the address whose connection is passed on from a port."""
        return self._clients.get(port)

    async def serve(self, opened: socket.socket, port: int) -> None:
        """Accept until cancelled, and pass on to a port of the loopback address."""
        await self.listener.serve(opened, lambda: _Client(self._clients, port), None)


class _End(asyncio.Protocol):
    """One end of a passed connection; `other` is where its bytes go."""

    def __init__(self) -> None:
        self.other: asyncio.Transport | None = None
        self.transport: asyncio.Transport | None = None
        self._early = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin without reading: there is nowhere to write to yet."""
        # uvloop's transports have the methods of asyncio's, not the type
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=BUFFERED_BYTES)
        self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Pass data on, or keep it while there is no other end: uvloop reads once more."""
        if self.other is not None:
            self.other.write(data)
            return
        self._early += data
        if self.transport is not None:
            self.transport.pause_reading()

    def join(self, other: asyncio.Transport) -> None:
        """Pass everything on to another end from now on."""
        self.other = other
        if self._early:
            other.write(bytes(self._early))
            self._early.clear()
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        """Read no more of the other end until this one has taken the buffered data."""
        if self.other is not None and not self.other.is_closing():
            self.other.pause_reading()

    def resume_writing(self) -> None:
        """Read on."""
        if self.other is not None and not self.other.is_closing():
            self.other.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the other end once it has the data that was passed on."""
        if self.other is not None:
            self.other.close()


class _Client(_End):
    def __init__(self, clients: dict[int, str], port: int) -> None:
        super().__init__()
        self._clients = clients
        self._port = port
        self._from: int | None = None
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect to the server."""
        super().connection_made(transport)
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._from is not None:
            self._clients.pop(self._from, None)
        super().connection_lost(exc)

    async def _connect(self) -> None:
        assert self.transport is not None
        address = self.transport.get_extra_info("peername")[0]
        plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        plain.setblocking(False)
        try:
            # known before the server accepts, which asks for the address at once
            plain.bind((LOOPBACK, 0))
            self._from = plain.getsockname()[1]
            self._clients[self._from] = owner(address)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(plain, (LOOPBACK, self._port))
            there, end = await loop.create_connection(_End, sock=plain)
        except OSError:  # the server in this process has stopped
            plain.close()
            self.transport.abort()
            return
        except asyncio.CancelledError:
            plain.close()
            self.transport.abort()
            raise
        end.join(self.transport)
        self.join(there)
