"""Counts the fields and numbers of a message before it is parsed. Pure.

A field of 2 bytes on the wire can be a tensor, which takes 200 bytes in memory, and a number of one
byte takes 8. So both are counted, at every level, and compared with what the model's largest
request has; a message within these bounds takes at most a few times its length.
"""

from __future__ import annotations

UNCHECKED_BYTES = 64 * 1024
"""Smaller messages are parsed as they are: they cost at most 3 MiB."""
MAX_FIELDS = 4096
"""Inputs, outputs, raw contents, parameters and the rest of one request, together."""
LARGEST_TEXT_BYTES = 1 << 20
"""Largest size of a message for a model that generates text, a prompt of 200 000 tokens: each open
stream may be sent one, and HTTP takes longer ones."""
NUMBER_BYTES = 10
"""Bytes of the longest number on the wire."""
_GROUP = (3, 4)
"""Begin and end; what is between counts as well."""
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_LAST_BYTES = bytes(range(128))
"""Last bytes of a number: as many bytes of these as there are numbers."""

_Nested = dict[int, "_Nested | None"]
_CONTENTS: _Nested = dict.fromkeys(range(1, 6))
"""Whole numbers, several in one field; the other contents have a fixed size or are counted."""
_INPUT: _Nested = {3: None, 4: {}, 5: _CONTENTS}
_OUTPUT: _Nested = {2: {}}
REQUEST: _Nested = {4: {}, 5: _INPUT, 6: _OUTPUT}
"""Fields by number whose content is counted: a message, or None for packed numbers."""


class WireCount:
    """Counts of a message's parts, as far as they were counted."""

    __slots__ = ("_bytes", "fields", "max_fields", "numbers")

    def __init__(self, message: bytes, max_fields: int = MAX_FIELDS) -> None:
        """Count until there are more fields than `max_fields`."""
        self.max_fields = max_fields
        self.fields = self.numbers = 0
        self._bytes = message
        if len(message) > UNCHECKED_BYTES:
            self._count(0, len(message), REQUEST)

    @property
    def too_many(self) -> bool:
        """Whether there are too many fields."""
        return self.fields > self.max_fields

    def _count(self, at: int, end: int, nested: _Nested) -> None:
        """Count a message's fields; stop where it is none: the parser says so, as early."""
        message = self._bytes
        try:
            while at < end and not self.too_many:
                self.fields += 1
                tag, at = _varint(message, at)
                kind = tag & 7
                if kind == _VARINT:
                    _, at = _varint(message, at)
                elif kind == _BYTES:
                    size, at = _varint(message, at)
                    if tag >> 3 in nested:
                        self._look(at, min(at + size, end), nested[tag >> 3])
                    at += size
                elif kind in (_FIXED_64, _FIXED_32):
                    at += 8 if kind == _FIXED_64 else 4
                elif kind not in _GROUP:
                    return
        except ValueError:
            return

    def _look(self, at: int, end: int, nested: _Nested | None) -> None:
        if nested is None:
            size = end - at
            self.numbers += size - len(self._bytes[at:end].translate(None, _LAST_BYTES))
        else:
            self._count(at, end, nested)


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
