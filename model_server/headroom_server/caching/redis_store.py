"""Redis as second level. The only module that imports its client."""

from __future__ import annotations

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from headroom_server.caching.store import BACKGROUND_TIMEOUT_S, StoredValue

PREFIX = b"headroom:"
MAX_CONNECTIONS = 32
"""More than concurrent lookups of `LOOKUP_S` and a few writes need."""


class RedisStore:
    """Keys under `headroom:`, each with its own expiry. Connects on first use."""

    def __init__(self, url: str) -> None:
        """Raise ValueError for a URL that is not a Redis URL."""
        self._redis = Redis.from_url(
            url,
            socket_timeout=BACKGROUND_TIMEOUT_S,
            socket_connect_timeout=BACKGROUND_TIMEOUT_S,
            max_connections=MAX_CONNECTIONS,
            retry=Retry(NoBackoff(), 0),
            decode_responses=False,
        )

    @property
    def is_protected(self) -> bool:
        """Whether a password, or the permissions of a socket in the file system, protect it."""
        known = self._redis.connection_pool.connection_kwargs
        return bool(known.get("password") or known.get("path"))

    async def get(self, key: bytes) -> StoredValue | None:
        """Return the value and its remaining time, in one round trip."""
        async with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.get(PREFIX + key)
            pipeline.pttl(PREFIX + key)
            value, left_ms = await pipeline.execute()
        return None if value is None or left_ms <= 0 else StoredValue(value, left_ms / 1000)

    async def put(self, key: bytes, value: bytes, ttl_s: float) -> None:
        """Store a value with its expiry in milliseconds."""
        await self._redis.set(PREFIX + key, value, px=max(1, round(ttl_s * 1000)))

    async def ping(self) -> None:
        """Send PING."""
        await self._redis.ping()

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.aclose()
