"""A store of sealed values: a value that was written without the secret is ignored."""

from __future__ import annotations

from collections.abc import Callable

from headroom_server.caching.seal import Seal
from headroom_server.caching.store import ByteStore, StoredValue


class SealedStore:
    """Seals what it stores, and returns only what was sealed for the same key."""

    def __init__(self, store: ByteStore, seal: Seal, now_s: Callable[[], float]) -> None:
        """Take the time as seconds since the epoch: replicas share the ends of values."""
        self._store = store
        self._seal = seal
        self._now_s = now_s

    async def get(self, key: bytes) -> StoredValue | None:
        """Return the value; raise ValueError if it was written without the secret."""
        name = self._seal.name(key)
        found = await self._store.get(name)
        if found is None:
            return None
        opened = self._seal.opened(name, found.value)
        if opened is None:
            raise ValueError("a value was written without HEADROOM_CACHE_REDIS_KEY")
        left_s = min(found.left_s, opened.until_s - self._now_s())
        return StoredValue(opened.value, left_s) if left_s > 0 else None

    async def put(self, key: bytes, value: bytes, ttl_s: float) -> None:
        """Seal and store a value for this long."""
        name = self._seal.name(key)
        sealed = self._seal.sealed(name, value, self._now_s() + ttl_s)
        await self._store.put(name, sealed, ttl_s)

    async def ping(self) -> None:
        """Connect if necessary."""
        await self._store.ping()

    async def close(self) -> None:
        """Close all connections."""
        await self._store.close()
