"""PURE. Values by key, bounded in bytes and in age: the least recently used ones go first."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

V = TypeVar("V")


class CachedValue(NamedTuple, Generic[V]):
    """A value, the bytes it holds, and when it is no longer fresh."""

    value: V
    size: int
    until_s: float


class Lru(Generic[V]):
    """At most `max_bytes` at any time.

    Stale values are found out when they are asked for; until then they stand within the bound like
    all others, and leave in their turn.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[bytes, CachedValue[V]] = OrderedDict()
        self.size = 0
        """Bytes held now."""
        self.evicted = 0
        """Fresh or not, how many had to go for others."""

    def __len__(self) -> int:
        """Values held now."""
        return len(self._kept)

    def get(self, key: bytes, now_s: float) -> V | None:
        """A value that is fresh; it is the most recently used one then."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept.until_s <= now_s:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return kept.value

    def put(self, key: bytes, kept: CachedValue[V]) -> None:
        """Keep a value, in place of the one that the key had; one above the bound is not kept."""
        self._drop(key)
        if kept.size > self._max_bytes:
            return
        while self.size + kept.size > self._max_bytes:
            self.size -= self._kept.popitem(last=False)[1].size
            self.evicted += 1
        self._kept[key] = kept
        self.size += kept.size

    def _drop(self, key: bytes) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.size -= kept.size
