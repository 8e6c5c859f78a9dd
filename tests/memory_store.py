"""A second level of caches without a network, which can be down."""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom_server.caching.store import StoredValue


@dataclass
class MemoryStore:
    """Keeps everything, at the age it came with."""

    values: dict[bytes, StoredValue] = field(default_factory=dict)
    down: bool = False

    def _check(self) -> None:
        if self.down:
            raise OSError("down")

    async def get(self, key: bytes) -> StoredValue | None:
        self._check()
        return self.values.get(key)

    async def put(self, key: bytes, value: bytes, ttl_s: float) -> None:
        self._check()
        self.values[key] = StoredValue(value, ttl_s)

    async def ping(self) -> None:
        self._check()

    async def close(self) -> None:
        """Nothing is open."""
