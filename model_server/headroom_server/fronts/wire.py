"""PURE. What a front and the device process say to each other, in frames.

Both ends come from one installation; VERSION is checked when a front starts all the same.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headroom_server.datatypes import DATATYPES, Numbers
from headroom_server.errors import (
    AbandonedError,
    DisconnectedError,
    ExpiredError,
    FailedError,
    QueueFullError,
    RefusedError,
    RequestError,
    UnknownModelError,
)
from headroom_server.fronts.frames import Kind, frame
from headroom_server.scheduling.terms import Terms
from headroom_server.tensors import TensorSpec

VERSION = 1
INLINE = -1
"""In place of an offset: the bytes follow in the frame."""

_SUBMIT = struct.Struct("<QIddBIIB")
_BLOB = struct.Struct("<qB")
_KEY = struct.Struct("<Q")
_VISIT = struct.Struct("<Qd")
_ERROR = struct.Struct("<QBI")
_INVALID = struct.Struct("<I")
_RELEASE = struct.Struct("<QQ")


class Blob(NamedTuple):
    """Some byte strings in a row: in shared memory from `offset` on, or here."""

    sizes: tuple[int, ...]
    offset: int = INLINE
    inline: bytes = b""

    @property
    def total(self) -> int:
        """Bytes of all."""
        return sum(self.sizes)


class Submit(NamedTuple):
    """A request. The tensors are in the order of the model's inputs."""

    key: int
    number: int
    """Of the model, as the catalogue has it."""
    arrived_s: float
    terms: Terms
    items: int
    length: int
    blob: Blob


_ERRORS: tuple[type[RequestError], ...] = (
    FailedError,
    RefusedError,
    QueueFullError,
    ExpiredError,
    AbandonedError,
    DisconnectedError,
    UnknownModelError,
)
"""By code. What is none of these has failed."""


# ---- requests


def submit(said: Submit) -> bytes:
    """A frame."""
    key, number, arrived_s, (deadline_s, priority, tenant), items, length, blob = said
    name = tenant.encode("ascii")
    return frame(
        Kind.SUBMIT,
        b"%b%b%b"
        % (
            _SUBMIT.pack(
                key,
                number,
                arrived_s,
                math.nan if deadline_s is None else deadline_s,
                priority,
                items,
                length,
                len(name),
            ),
            name,
            _packed(blob),
        ),
    )


def read_submit(payload: bytes) -> Submit:
    """The inverse."""
    fields = _SUBMIT.unpack_from(payload)
    key, number, arrived_s, deadline_s, priority, items, length, size = fields
    at = _SUBMIT.size + size
    terms = Terms(
        None if math.isnan(deadline_s) else deadline_s,
        priority,
        payload[_SUBMIT.size : at].decode("ascii") if size else "",
    )
    return Submit(key, number, arrived_s, terms, items, length, _unpacked(payload, at))


def cancel(key: int) -> bytes:
    """A frame."""
    return frame(Kind.CANCEL, _KEY.pack(key))


def read_key(payload: bytes) -> int:
    """The key of what was cancelled."""
    return int(_KEY.unpack(payload)[0])


def invalid(number: int, reason: str) -> bytes:
    """A frame."""
    return frame(Kind.INVALID, _INVALID.pack(number) + reason.encode())


def read_invalid(payload: bytes) -> tuple[int, str]:
    """The model's number and the reason."""
    return _INVALID.unpack_from(payload)[0], payload[_INVALID.size :].decode()


def visit(key: int, retire_at_s: float, blob: Blob) -> bytes:
    """A frame."""
    return frame(Kind.VISIT, _VISIT.pack(key, retire_at_s) + _packed(blob))


def read_visit(payload: bytes) -> tuple[int, float, Blob]:
    """The key of the connection, when it retires, and what was read of it."""
    key, retire_at_s = _VISIT.unpack_from(payload)
    return key, retire_at_s, _unpacked(payload, _VISIT.size)


def release(blob: Blob) -> bytes:
    """A frame."""
    return frame(Kind.RELEASE, _RELEASE.pack(blob.offset, blob.total))


def read_release(payload: bytes) -> tuple[int, int]:
    """Where a block begins, and its size."""
    begin, size = _RELEASE.unpack(payload)
    return begin, size


# ---- answers


def outputs(key: int, blob: Blob) -> bytes:
    """A frame; the tensors are in the order of the model's outputs."""
    return frame(Kind.OUTPUTS, _KEY.pack(key) + _packed(blob))


def read_outputs(payload: bytes) -> tuple[int, Blob]:
    """The request's key, and its outputs."""
    return _KEY.unpack_from(payload)[0], _unpacked(payload, _KEY.size)


def error(key: int, what: RequestError) -> bytes:
    """A frame."""
    kind = type(what)
    code = _ERRORS.index(kind) if kind in _ERRORS else 0
    retry_after_s = what.retry_after_s if isinstance(what, RefusedError) else 0
    return frame(Kind.ERROR, _ERROR.pack(key, code, retry_after_s) + what.message.encode())


def read_error(payload: bytes) -> tuple[int, RequestError]:
    """The request's key, and its error in the same type with the same words."""
    key, code, retry_after_s = _ERROR.unpack_from(payload)
    kind, message = _ERRORS[code], payload[_ERROR.size :].decode()
    if issubclass(kind, RefusedError):
        return key, kind(message, retry_after_s=retry_after_s)
    if kind is DisconnectedError:
        return key, DisconnectedError()
    return key, kind(message)


def state(*, draining: bool, crowded: bool) -> bytes:
    """A frame."""
    return frame(Kind.STATE, bytes((draining, crowded)))


def read_state(payload: bytes) -> tuple[bool, bool]:
    """Draining, crowded."""
    draining, crowded = payload
    return bool(draining), bool(crowded)


# ---- tensors


def in_order(specs: Sequence[TensorSpec], tensors: Mapping[str, Numbers]) -> list[bytes]:
    """The bytes of all tensors."""
    return [tensors[spec.name].tobytes() for spec in specs]


def by_name(specs: Sequence[TensorSpec], parts: Sequence[memoryview]) -> dict[str, Numbers]:
    """The inverse; the numbers are copied."""
    found: dict[str, Numbers] = {}
    for spec, part in zip(specs, parts, strict=True):
        numbers: Numbers = array(DATATYPES[spec.datatype].typecode)
        numbers.frombytes(part)
        found[spec.name] = numbers
    return found


def _packed(blob: Blob) -> bytes:
    sizes, offset, inline = blob
    return b"%b%b%b" % (
        _BLOB.pack(offset, len(sizes)),
        struct.pack(f"<{len(sizes)}I", *sizes),
        inline,
    )


def _unpacked(payload: bytes, at: int) -> Blob:
    offset, count = _BLOB.unpack_from(payload, at)
    at += _BLOB.size
    sizes = struct.unpack_from(f"<{count}I", payload, at)
    return Blob(sizes, offset, payload[at + 4 * count :] if offset == INLINE else b"")
