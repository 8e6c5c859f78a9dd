"""One connection's reads, in the turns of all connections."""

# ruff: noqa: D102 - asyncio documents what is overridden here

from __future__ import annotations

import asyncio
from typing import Protocol

from headroom_server.web.connections.read_turns import SMALL_READ_BYTES, ReadTurns


class Receiver(Protocol):
    """Receiver of the reads: an `asyncio.Protocol` that can pause its transport."""

    @property
    def read_paused(self) -> bool:
        """Whether it has paused its transport itself."""

    def connection_made(self, transport: asyncio.Transport) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def eof_received(self) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


class SocketReads(asyncio.BufferedProtocol):
    """Reads for a receiver."""

    def __init__(self, protocol: Receiver, turns: ReadTurns) -> None:
        self._protocol = protocol
        self._turns = turns
        self._granted = self._waits = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._client = str(peer[0]) if peer else ""
        self._protocol.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.connection_lost(exc)

    def eof_received(self) -> None:
        self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._turns.buffer(granted=self._granted)

    def buffer_updated(self, nbytes: int) -> None:
        data = self._turns.take(nbytes)
        self._granted = False
        if nbytes < SMALL_READ_BYTES:
            self._protocol.data_received(data)
            return
        try:
            self._protocol.data_received(data)
        finally:
            self._turns.ended()
        if nbytes == SMALL_READ_BYTES and not self._transport.is_closing():
            self._transport.pause_reading()
            if not self._waits:
                self._waits = True
                self._turns.later(self._client, self._resume)

    def _resume(self) -> None:
        self._waits = False
        if not (self._transport.is_closing() or self._protocol.read_paused):
            self._granted = True
            self._transport.resume_reading()
