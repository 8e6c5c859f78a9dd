"""The layouts of pages that were used last, of all services together: bounded whatever pods send.

A server of one service may make up series, and profiles of custom metrics are many: a bound for
each pod or profile would be none. What is forgotten costs time, or that a dropped series looks like
a restart; it changes no other result.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")

LARGEST = 8
"""A layout has at most this part of what is remembered, else it would displace too many."""
SEEN_ONCE = 4096


class Recent(Generic[Key, Found]):
    """Results for layouts, by a key: those used last, within both bounds."""

    def __init__(self, most_series: int, most_bytes: int = 0) -> None:
        """`most_bytes` bounds texts that the keys keep."""
        self._most = most_series, most_bytes
        self._used = 0, 0
        self._found: dict[Key, tuple[Found, int, int]] = {}
        """With series and bytes. Those used last are at the end."""

    @property
    def used(self) -> tuple[int, int]:
        """Series and bytes that are remembered."""
        return self._used

    def get(self, key: Key) -> Found | None:
        """Return the remembered value."""
        known = self._found.pop(key, None)
        if known is None:
            return None
        self._found[key] = known
        return known[0]

    def add(self, key: Key, found: Found, series: int, size: int = 0) -> bool:
        """Remember it, or note its use; forget what was not used for longest.

        Returns False for what is too large to be remembered.
        """
        if LARGEST * series > self._most[0] or LARGEST * size > self._most[1]:
            return False
        if self.get(key) is not None:
            return True
        self._found[key] = found, series, size
        self._count(series, size)
        while self._used[0] > self._most[0] or self._used[1] > self._most[1]:
            _, gone, bytes_gone = self._found.pop(next(iter(self._found)))
            self._count(-gone, -bytes_gone)
        return True

    def _count(self, series: int, size: int) -> None:
        self._used = self._used[0] + series, self._used[1] + size


class SeenBefore:
    """Tells what was seen before: what is new on each page does not displace what is not."""

    def __init__(self) -> None:
        self._seen_once: dict[int, None] = {}

    def __call__(self, key: Hashable) -> bool:
        """Return whether this was seen before, and forget it."""
        digest = hash(key)
        if digest in self._seen_once:
            del self._seen_once[digest]
            return True
        if len(self._seen_once) >= SEEN_ONCE:
            del self._seen_once[next(iter(self._seen_once))]
        self._seen_once[digest] = None
        return False


@dataclass(frozen=True, slots=True)
class LayoutMemory:
    """Memory that readers of several profiles share."""

    pages: Recent[Any, Any] = field(default_factory=lambda: Recent(16_384, 1 << 22))
    """Layouts by the texts before the values. A series takes about 300 bytes; Headroom's server has
    200, and pods of one model share them."""
    seen: SeenBefore = field(default_factory=SeenBefore)
    going_on: Recent[Any, bool] = field(default_factory=lambda: Recent(8192))
    """Layouts that pods' pages go on from."""
