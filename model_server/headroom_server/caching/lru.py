"""A cache bounded in bytes and in age, shared by tenants. Pure."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from headroom_server.scheduling.eviction_order import EvictionOrder

V = TypeVar("V")


class CachedValue(NamedTuple, Generic[V]):
    """A value, its size in bytes, when it expires, and the tenant whose request computed it."""

    value: V
    size: int
    until_s: float
    tenant: str = ""


class Lru(Generic[V]):
    """At most `max_bytes` at any time; which values make room: `scheduling/eviction_order.py`.

    Expired values are found on lookup; until then they count towards the limit and are evicted in
    turn.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: dict[bytes, CachedValue[V]] = {}
        self._order: EvictionOrder[bytes] = EvictionOrder(max_bytes)
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
        self._order.use(key)
        return kept.value

    def put(self, key: bytes, kept: CachedValue[V], now_s: float) -> None:
        """Store a value in place of the key's previous one, unless it exceeds the limit."""
        self._drop(key)
        if kept.size > self._max_bytes:
            return
        while self.size + kept.size > self._max_bytes:
            oldest = self._order.oldest()
            expired = self._kept[oldest].until_s <= now_s
            self._drop(oldest if expired else self._order.next_for(kept.tenant))
            self.evicted += 1
        self._kept[key] = kept
        self._order.take(kept.tenant, kept.size)
        self._order.keep(key, kept.tenant)
        self.size += kept.size

    def _drop(self, key: bytes) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._order.give_back(self._order.remove(key), kept.size)
            self.size -= kept.size
