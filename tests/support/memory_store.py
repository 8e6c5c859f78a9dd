"""A second level of caches without a network, which can fail and hang."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from headroom_server.caching.store import StoredValue

DOWN = OSError("down")


@dataclass
class MemoryStore:
    """Keeps everything, at the age it came with."""

    values: dict[bytes, StoredValue] = field(default_factory=dict)
    error: Exception | None = None
    """Raised by every call."""
    hangs: bool = False
    asked: int = 0
    """Calls that read, write or close."""

    async def _turn(self) -> None:
        self.asked += 1
        if self.hangs:
            await asyncio.sleep(60)
        await self.ping()

    async def get(self, key: bytes) -> StoredValue | None:
        await self._turn()
        return self.values.get(key)

    async def put(self, key: bytes, value: bytes, ttl_s: float) -> None:
        await self._turn()
        self.values[key] = StoredValue(value, ttl_s)

    async def ping(self) -> None:
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        """Nothing is open."""
