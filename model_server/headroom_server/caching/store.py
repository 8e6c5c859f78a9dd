"""The interface of a second level outside this process, and limits on the harm it can do.

A lookup takes at most `LOOKUP_S`; writes happen in the background, a limited number at a time. A
store that is down or slow is not used for a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol

from headroom_server.caching.breaker import Breaker

log = logging.getLogger("headroom_server")

LOOKUP_S = 0.020
BACKGROUND_TIMEOUT_S = 1.0
"""Timeout of probes and writes, for which no request waits."""
MAX_WRITES = 64
MAX_WRITE_BYTES = 32 << 20
"""Maximum bytes waiting to be written; more are dropped."""


class StoredValue(NamedTuple):
    """A value and its remaining time."""

    value: bytes
    left_s: float


class ByteStore(Protocol):
    """Bytes by key, shared by replicas. Every method may raise any exception, and may hang."""

    async def get(self, key: bytes) -> StoredValue | None:
        """Return the value, if there is a fresh one."""

    async def put(self, key: bytes, value: bytes, ttl_s: float) -> None:
        """Store a value for this long."""

    async def ping(self) -> None:
        """Connect if necessary."""

    async def close(self) -> None:
        """Close all connections."""


class GuardedStore:
    """A store whose calls never fail and never take long."""

    def __init__(self, store: ByteStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._breaker = Breaker()
        self._background: set[asyncio.Task[None]] = set()
        self._written_bytes = 0
        self.failures = 0
        """Lookups and writes that failed or were late."""
        self.unwritten = 0
        """Answers that were not written because too many were waiting."""

    @property
    def enabled(self) -> bool:
        """Whether lookups are made now."""
        return self._breaker.closed

    def start(self) -> None:
        """Probe if due, on the running loop."""
        if self._breaker.probe(self._clock()):
            self._in_background(self._probe())

    async def get(self, key: bytes) -> StoredValue | None:
        """Return the value; None if there is none or it is not available in time."""
        try:
            async with asyncio.timeout(LOOKUP_S):
                found = await self._store.get(key)
        except Exception as error:  # noqa: BLE001 - whatever it is, the device can answer
            self._failed(error)
            return None
        self._breaker.answered()
        return found

    def put(self, key: bytes, value: bytes, ttl_s: float) -> None:
        """Write a value in the background."""
        full = len(self._background) >= MAX_WRITES
        if full or self._written_bytes + len(value) > MAX_WRITE_BYTES:
            self.unwritten += 1
            return
        self._in_background(self._write(key, value, ttl_s))

    async def close(self) -> None:
        """Finish pending writes, within a timeout, and close all connections."""
        if self._background:
            _, late = await asyncio.wait(self._background, timeout=BACKGROUND_TIMEOUT_S)
            for task in late:
                task.cancel()
        try:
            async with asyncio.timeout(BACKGROUND_TIMEOUT_S):
                await self._store.close()
        except Exception as error:  # noqa: BLE001 - it is the end
            log.warning("closing the second level of the response cache failed: %r", error)

    async def _probe(self) -> None:
        try:
            async with asyncio.timeout(BACKGROUND_TIMEOUT_S):
                await self._store.ping()
        except Exception as error:  # noqa: BLE001 - probing again is all that can be done
            log.warning("the second level of the response cache does not respond: %r", error)
            self._breaker.probed(self._clock(), ok=False)
        else:
            self._breaker.probed(self._clock(), ok=True)

    async def _write(self, key: bytes, value: bytes, ttl_s: float) -> None:
        self._written_bytes += len(value)
        try:
            async with asyncio.timeout(BACKGROUND_TIMEOUT_S):
                await self._store.put(key, value, ttl_s)
        except Exception as error:  # noqa: BLE001 - an answer that is not kept is computed again
            self._failed(error)
        finally:
            self._written_bytes -= len(value)

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        if self._breaker.failed(self._clock()):
            log.warning("the second level of the response cache is not used for now: %r", error)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
