"""A cache of parsed request heads, found by their bytes. Pure.

A client that keeps a connection repeats the same head, including the body's length. Equal bytes
parse equally, so such a request needs no parser. Only heads with an unambiguous end are cached: CR
LF after every line, in one read together with a body that ends with the read.
"""

from __future__ import annotations

from typing import NamedTuple

END = b"\r\n\r\n"
LONGEST_BYTES = 2048
MOST_HEADS = 256
"""At most 0.5 MiB. The cache is cleared when it is full: clients that never repeat a head (a trace
ID in each) must not disable it for others for long."""


class Head(NamedTuple):
    """A POST's request line and headers."""

    path: str
    headers: dict[bytes, bytes]
    """Names in lower case. Not modified."""
    body_bytes: int
    keep_alive: bool


class KnownHeads:
    """The cache of one server."""

    def __init__(self) -> None:
        self._by_bytes: dict[bytes, Head] = {}

    def __len__(self) -> int:
        """Return the number of cached heads."""
        return len(self._by_bytes)

    def split(self, data: bytes) -> tuple[Head, bytes] | None:
        """Split one whole request with a known head into head and body; else return None."""
        end = data.find(END) + len(END)
        head = self._by_bytes.get(data[:end])
        if head is None or head.body_bytes != len(data) - end:
            return None
        return head, data[end:]

    def learn(self, data: bytes, head: Head) -> None:
        """Cache the head of a request that began with `data` and ended within it."""
        end = data.find(END) + len(END)
        text = data[:end]
        if (
            end > LONGEST_BYTES
            or head.body_bytes != len(data) - end
            or text.count(b"\n") != text.count(b"\r\n")
        ):
            return
        if len(self._by_bytes) >= MOST_HEADS:
            self._by_bytes.clear()
        self._by_bytes[text] = head
