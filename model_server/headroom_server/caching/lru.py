"""An LRU cache bounded in bytes and in age. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

V = TypeVar("V")


class CachedValue(NamedTuple, Generic[V]):
    """A value, its size in bytes, and when it expires."""

    value: V
    size: int
    until_s: float


class Lru(Generic[V]):
    """At most `max_bytes` at any time.

    Expired values are found on lookup; until then they count towards the limit and are evicted in
    turn.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[bytes, CachedValue[V]] = OrderedDict()
        self.size = 0
        """Current size in bytes."""
        self.evicted = 0
        """Values evicted to make room, expired or not."""

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._kept)

    def get(self, key: bytes, now_s: float) -> V | None:
        """Return a fresh value and mark it as most recently used."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept.until_s <= now_s:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return kept.value

    def put(self, key: bytes, kept: CachedValue[V]) -> None:
        """Store a value in place of the key's previous one, unless it exceeds the limit."""
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
