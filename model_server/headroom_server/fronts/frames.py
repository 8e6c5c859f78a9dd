"""PURE. Frames on a stream of bytes, and what each kind of them says.

frame: payload bytes (u32) | kind (u8) | payload        little-endian, any number in one write
"""

from __future__ import annotations

import struct
from enum import IntEnum

_HEAD = struct.Struct("<IB")


class Kind(IntEnum):
    """What a frame says."""

    SUBMIT = 1
    """A request, read and checked."""
    CANCEL = 2
    """Its client has left."""
    INVALID = 3
    """Bad input, to be counted."""
    VISIT = 4
    """A connection that comes beside this channel, and what was read of its next request."""
    RELEASE = 5
    """A block of the other side's memory was read."""
    OUTPUTS = 6
    ERROR = 7
    CATALOGUE = 8
    STATE = 9
    """Whether the server drains, and whether it is crowded."""
    REFUSE = 10
    """Accept no new connections."""
    LEAVE = 11
    """Answer what is owed, and end."""


def frame(kind: Kind, payload: bytes = b"") -> bytes:
    """One frame."""
    return _HEAD.pack(len(payload), kind) + payload


class Frames:
    """Whole frames out of bytes as they come."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Kinds and payloads of all that are complete.

        Raises:
            ValueError: for a kind that there is not.
        """
        if self._rest:
            self._rest += data
            if len(self._rest) < self._wanted():
                return []
            data = bytes(self._rest)
            self._rest.clear()
        found, at, size = [], 0, len(data)
        while size - at >= _HEAD.size:
            length, kind = _HEAD.unpack_from(data, at)
            begin = at + _HEAD.size
            if not 1 <= kind <= Kind.LEAVE:
                raise ValueError(f"a kind of frame from 1 to {Kind.LEAVE:d}; got {kind}")
            if size - begin < length:
                break
            found.append((kind, data[begin : begin + length]))
            at = begin + length
        if at < size:
            self._rest += data[at:]
        return found

    def _wanted(self) -> int:
        if len(self._rest) < _HEAD.size:
            return _HEAD.size
        return _HEAD.size + int(_HEAD.unpack_from(self._rest)[0])
