"""Bounds on a request's body that follow from the model: looked at before it is parsed. Pure.

A parser builds an object for each value: `[]` has 2 bytes in a body, and 64 in memory. So a large
body is refused by its length before it is received, and by the number of its values and of its
lists, objects and fields before it is parsed. Numbers take at most some 50 bytes of memory each
while they are parsed; a body within these bounds takes at most 16 times its length.
"""

from __future__ import annotations

import math
import re

from headroom_server.errors import TooLargeError
from headroom_server.signature import Signature
from headroom_server.tensors import DYNAMIC, TensorSpec

UNCHECKED_BYTES = 64 * 1024
"""Smaller bodies are parsed as they are: they cost at most 8 MiB."""
NUMBER_BYTES = 64
"""Bytes of one number in JSON with its separator and indentation: 24 digits, 40 spaces."""
_OTHER = 4096
"""Values, and lists, objects and fields, of everything that is no tensor's data."""
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class BodyBounds:
    """Bounds of a model's largest request."""

    def __init__(self, signature: Signature, max_items: int) -> None:
        length = signature.lengths[-1] if signature.lengths else 0
        elements = max_items * sum(spec.elements_at(length) for spec in signature.inputs)
        lists = max_items * sum(_lists(spec, length) for spec in signature.inputs)
        self.max_values = elements + _OTHER
        self.max_parts = lists + 2 * max_items * (1 + len(signature.inputs)) + _OTHER
        has_strings = any(spec.is_strings for spec in signature.inputs)
        self.max_strings = 2 * self.max_parts + self.max_values * has_strings
        self.max_bytes = None if has_strings else UNCHECKED_BYTES + NUMBER_BYTES * elements
        """Largest size of a whole body; None if its strings may have any length."""

    def limit(self, max_body_bytes: int) -> int:
        """Return the most bytes that a body may have, given the server's own limit."""
        return max_body_bytes if self.max_bytes is None else min(max_body_bytes, self.max_bytes)

    def check(self, body: bytes, head_bytes: int | None = None) -> None:
        """Check the values of a body, or of its first `head_bytes`, before they are parsed.

        Raises:
            TooLargeError: if the model's largest request has fewer.
        """
        if len(body) <= UNCHECKED_BYTES:
            return
        if head_bytes is not None:
            body = body[:head_bytes]
        if not self._fits(body) and not self._fits(without_strings(body, self.max_strings)):
            raise TooLargeError(
                f"the body must have at most {self.max_values} values and {self.max_parts} lists, "
                "objects and fields, those of the largest batch; got more"
            )

    def _fits(self, body: bytes) -> bool:
        return (
            body.count(b",") <= self.max_values
            and body.count(b"[") + body.count(b"{") + body.count(b":") <= self.max_parts
        )


def without_strings(body: bytes, most: int) -> bytes:
    """Return a body without its strings, to count the values outside of them.

    The pieces between them take 100 bytes of memory each, so a body is refused by their number
    before: 2.6 million empty strings took 380 MB. An escaped backslash at the end of a string hides
    one of its two quotes from this count.

    Raises:
        TooLargeError: it has more than about `most` strings.
    """
    if body.count(b'"') - body.count(b'\\"') > 2 * most:
        raise TooLargeError(f"the body must have at most {most} strings; got more")
    return _STRING.sub(b"", body)


def _lists(spec: TensorSpec, length: int) -> int:
    """Return the lists of one item's data, nested in full: one per row of its last dimension."""
    sizes = [length if size == DYNAMIC else size for size in spec.shape]
    return sum(math.prod(sizes[:depth]) for depth in range(len(sizes)))
