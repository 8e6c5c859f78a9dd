"""PURE. Heads of requests that were read before, found by their bytes.

Who keeps a connection sends the same head again and again, the length of the body included. What
the parser made of these bytes once it would make of them again, so that a whole request needs it
no more. The heads that are kept are those whose end is beyond doubt: CR LF behind every line, in
one read with a body that ends with it.
"""

from __future__ import annotations

from typing import NamedTuple

END = b"\r\n\r\n"
LONGEST_BYTES = 2048
MOST_HEADS = 256
"""At most 0.5 MiB. All are forgotten when there would be more: clients that never send the same
head twice (a trace of its own in each) must not cost others theirs for long."""


class Head(NamedTuple):
    """What a POST's request line and headers say."""

    path: str
    headers: dict[bytes, bytes]
    """Names in lower case. Never written."""
    body_bytes: int
    keep_alive: bool


class KnownHeads:
    """Those of one server."""

    def __init__(self) -> None:
        self._by_bytes: dict[bytes, Head] = {}

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._by_bytes)

    def split(self, data: bytes) -> tuple[Head, bytes] | None:
        """Head and body of what is one whole request with a head that is known; else None."""
        end = data.find(END) + len(END)
        head = self._by_bytes.get(data[:end])
        if head is None or head.body_bytes != len(data) - end:
            return None
        return head, data[end:]

    def learn(self, data: bytes, head: Head) -> None:
        """Note what the parser said of a request that began with `data` and ended within it."""
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
