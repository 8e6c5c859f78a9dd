"""Two levels of cached values: this process's memory, and the second level that replicas share.

Everything runs on the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from headroom_server.caching.flights import Wait, wait_forever
from headroom_server.caching.lru import CachedValue, Lru
from headroom_server.caching.store import GuardedStore

V = TypeVar("V")


class LevelCounts(NamedTuple):
    """Statistics of both levels for metrics."""

    size: int
    entries: int
    evicted: int
    store_failures: int | None
    """None without a second level."""
    store_enabled: bool


class LevelOptions(NamedTuple):
    """Bounds of both levels, and the second one, which several caches may share."""

    max_bytes: int
    ttl_s: float
    clock: Callable[[], float]
    store: GuardedStore | None = None


class Levels(Generic[V]):
    """Values by key, bounded in bytes and age."""

    def __init__(self, options: LevelOptions, size_of: Callable[[V], int]) -> None:
        max_bytes, self._ttl_s, self._clock, self._store = options
        self._size_of = size_of
        self._memory: Lru[V] = Lru(max_bytes)

    def start(self) -> None:
        """Connect to the second level, on the running loop."""
        if self._store is not None:
            self._store.start()

    def counts(self) -> LevelCounts:
        """Return the current statistics."""
        store, memory = self._store, self._memory
        return LevelCounts(
            memory.size,
            len(memory),
            memory.evicted,
            None if store is None else store.failures,
            store is not None and store.enabled,
        )

    def remembered(self, key: bytes) -> V | None:
        """Return the value in memory."""
        return self._memory.get(key, self._clock())

    async def stored(
        self,
        key: bytes,
        decode: Callable[[bytes], V | None],
        tenant: str,
        wait: Wait = wait_forever,
    ) -> V | None:
        """Return the value of the second level, and keep it in memory for the tenant that asked.

        `wait` may end the look-up early.
        """
        store = self._store
        if store is None:
            return None
        if not store.enabled:
            store.start()
            return None
        lookup = asyncio.ensure_future(store.get(key))
        try:
            found = await wait(lookup)
        finally:
            lookup.cancel()
        value = None if found is None else decode(found.value)
        if found is not None and value is not None:
            self._remember(key, value, min(found.left_s, self._ttl_s), tenant)
        return value

    def keep(self, key: bytes, value: V, encode: Callable[[bytes, V], bytes], tenant: str) -> None:
        """Keep a new value in both levels; its memory is its tenant's."""
        self._remember(key, value, self._ttl_s, tenant)
        store = self._store
        if store is not None and store.enabled:
            store.put(key, encode(key, value), self._ttl_s)

    def _remember(self, key: bytes, value: V, ttl_s: float, tenant: str) -> None:
        now_s = self._clock()
        kept = CachedValue(value, self._size_of(value), now_s + ttl_s, tenant)
        self._memory.put(key, kept, now_s)
