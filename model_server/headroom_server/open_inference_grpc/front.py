"""The listener before the gRPC library, with the bounds that the library lacks.

Each connection is piped to the library's server at an abstract Unix socket, from a socket whose
name begins with the client's address: the library gives it as the peer of each call.
"""

from __future__ import annotations

import asyncio
import socket
from itertools import count
from typing import cast

from headroom_server.open_inference_grpc.http2_heads import Http2Heads
from headroom_server.process import BACKLOG, acceptors, bound_to
from headroom_server.web.shared_bound import SharedBound

PIECE_BYTES = 32 * 1024
"""Most that is read at once, and so most that waits to be written in each direction."""
LAST_BYTES_WITHIN_S = 5.0
"""Then a client that does not read what the server sent before it closed is cut off."""


class Front:
    """Accepts connections after `listen`."""

    def __init__(self, connections: SharedBound, receiving: SharedBound) -> None:
        """A client has its share of the connections, and of the bytes of unfinished heads."""
        self.connections, self.receiving = connections, receiving
        self.piece = memoryview(bytearray(PIECE_BYTES))
        self.opening: set[asyncio.Task[None]] = set()
        self._listener: socket.socket | None = None
        self._servers: list[asyncio.Server] = []
        self._numbers = count()
        self.name = ""
        """Name of the library's socket: as unique as the address is. Without a colon, behind which
        the library's peer would have no address."""

    def bind(self, host: str, port: int) -> int:
        """Bind the address, and return the port.

        Raises:
            OSError: the address is in use, or not an address of this machine.
        """
        self._listener = bound_to(host, port)
        address, bound, *_ = self._listener.getsockname()
        self.name = f"headroom-grpc-{address}-{bound}".replace(":", ".")
        return int(bound)

    async def listen(self) -> None:
        """Accept connections from now on."""
        assert self._listener is not None
        loop = asyncio.get_running_loop()
        for one in acceptors(self._listener):
            server = await loop.create_server(lambda: _Client(self), sock=one, backlog=BACKLOG)
            self._servers.append(server)

    def close(self) -> None:
        """Accept none any more; the library closes those that are open."""
        for one in self._servers:
            one.close()
        if self._listener is not None:
            self._listener.close()

    def connected(self, client: str) -> socket.socket:
        """Return a socket that is connected to the library, in the name of a client.

        Raises:
            OSError: the library does not listen any more.
        """
        inside = socket.socket(socket.AF_UNIX)
        try:
            inside.setblocking(False)
            inside.bind(f"\0{client}:{self.name}-{next(self._numbers)}")
            inside.connect(f"\0{self.name}")
        except OSError:
            inside.close()
            raise
        return inside


class _Pipe(asyncio.BufferedProtocol):
    """The library's end of a connection, and the base of the client's end."""

    transport: asyncio.Transport | None = None

    def __init__(self, piece: memoryview, other: _Pipe | None = None) -> None:
        self._piece, self.other = piece, other

    @property
    def _across(self) -> asyncio.Transport | None:
        """The transport of the other end, while it is open."""
        found = self.other.transport if self.other is not None else None
        return found if found is not None and not found.is_closing() else None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=0)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._piece

    def buffer_updated(self, nbytes: int) -> None:
        self.received(bytes(self._piece[:nbytes]))

    def received(self, data: bytes) -> None:
        """Write the received bytes to the other end."""
        if (across := self._across) is not None:
            across.write(data)

    def pause_writing(self) -> None:
        if (across := self._across) is not None:
            across.pause_reading()

    def resume_writing(self) -> None:
        if (across := self._across) is not None:
            across.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the client's end once it has read the last bytes."""
        if (across := self._across) is not None:
            across.close()
            if across.get_write_buffer_size():
                asyncio.get_running_loop().call_later(LAST_BYTES_WITHIN_S, across.abort)


class _Client(_Pipe):
    """The client's end."""

    _heads: Http2Heads | None = None
    """None for a connection beyond the client's share."""

    def __init__(self, front: Front) -> None:
        super().__init__(front.piece)
        self._front, self._address, self._early = front, "", b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        front, self._address = self._front, transport.get_extra_info("peername")[0]
        if not front.connections.fits(self._address, 1):
            transport.abort()  # type: ignore[attr-defined]
            return
        front.connections.take(self._address, 1)
        self._heads = Http2Heads(front.receiving, self._address)
        task = asyncio.get_running_loop().create_task(self._open())
        front.opening.add(task)
        task.add_done_callback(front.opening.discard)

    async def _open(self) -> None:
        """Connect to the library, then pass on the bytes received meanwhile."""
        assert self.transport is not None
        other = _Pipe(self._front.piece, self)
        try:
            inside = self._front.connected(self._address)
            loop = asyncio.get_running_loop()
            await loop.create_unix_connection(lambda: other, sock=inside)
        except OSError:
            self.transport.abort()
            return
        self.other = other
        if self.transport.is_closing():
            self.connection_lost(None)
        elif self._early:
            self.transport.resume_reading()
            super().received(self._early)
            self._early = b""

    def received(self, data: bytes) -> None:
        assert self.transport is not None
        if self._heads is None:
            return
        passed = self._heads.passed(data)
        if passed is None:
            self.transport.abort()
        elif self.other is None:  # uvloop begins to read behind `connection_made`
            self._early += passed
            self.transport.pause_reading()
        elif passed:
            super().received(passed)

    def connection_lost(self, exc: Exception | None) -> None:
        if (across := self._across) is not None:
            across.abort()
        if self._heads is not None:
            self._heads.close()
            self._heads = None
            self._front.connections.give_back(self._address, 1)
