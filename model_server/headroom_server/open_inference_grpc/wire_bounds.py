"""PURE. Counts the fields of a message before it is parsed.

A field of 2 bytes on the wire can be a tensor, which takes 40 times as much in memory. Nested
fields cost at most 16 bytes per byte and need no count.
"""

from __future__ import annotations

UNCHECKED_BYTES = 64 * 1024
"""Smaller messages are parsed as they are: they cost at most 3 MiB."""
MAX_FIELDS = 4096
"""Inputs, outputs, raw contents, parameters and the rest of one request, together."""
_GROUP = (3, 4)
"""Begin and end; what is between counts as well."""
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5


def has_many_fields(message: bytes) -> bool:
    """Return whether a message has too many fields at its top level.

    False for what is no message: the parser reports it, after at most as many fields.
    """
    if len(message) <= UNCHECKED_BYTES:
        return False
    at = 0
    try:
        for _ in range(MAX_FIELDS):
            if at >= len(message):
                return False
            tag, at = _varint(message, at)
            kind = tag & 7
            if kind == _VARINT:
                _, at = _varint(message, at)
            elif kind == _BYTES:
                size, at = _varint(message, at)
                at += size
            elif kind in (_FIXED_64, _FIXED_32):
                at += 8 if kind == _FIXED_64 else 4
            elif kind not in _GROUP:
                return False
    except ValueError:
        return False
    return at < len(message)


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a number and the position after it; ValueError if there is none."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a varint must end within the message and have at most 10 bytes")
