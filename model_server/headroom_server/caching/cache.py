"""One model's response cache: memory, then the second level, then one execution for all who ask.

Errors are never kept. A hit costs no place in the queue and no admission. All of it runs on the
event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

from headroom_server.caching.counts import Counts, Source
from headroom_server.caching.flights import Flight, Turn, Word
from headroom_server.caching.keys import Keys
from headroom_server.caching.lru import Kept, Lru
from headroom_server.caching.store import Guarded
from headroom_server.caching.values import decoded, encoded, size_of
from headroom_server.connection import Connection
from headroom_server.device.execution import Outputs
from headroom_server.engine import Work
from headroom_server.errors import (
    AbandonedError,
    DisconnectedError,
    ExpiredError,
    RefusedError,
    RequestError,
)
from headroom_server.tensors import Signature

T = TypeVar("T")

OWN_ENDS = (
    RefusedError,
    ExpiredError,
    DisconnectedError,
    AbandonedError,
    asyncio.CancelledError,
)
"""Ends of a request that say nothing of an equal one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much is kept, for how long, and how much may wait for executions of others."""

    max_bytes: int
    ttl_s: float
    max_joined_bytes: int = 1 << 30


class Asked(NamedTuple):
    """One request: its numbers, when it is due, whose connection may be lost."""

    work: Work
    due_s: float | None
    connection: Connection


class Cache:
    """Serves once it is told the model's signature. `store` may be shared by many."""

    def __init__(
        self,
        identity: str,
        bounds: Bounds,
        clock: Callable[[], float],
        store: Guarded | None = None,
    ) -> None:
        self._identity = identity
        self._bounds = bounds
        self._clock = clock
        self._store = store
        self._memory: Lru[Outputs] = Lru(bounds.max_bytes)
        self._flights: dict[bytes, Flight] = {}
        self._joined_bytes = 0
        self._signature: Signature | None = None
        self._keys: Keys | None = None
        self._by_source = dict.fromkeys(Source, 0)

    def serve(self, signature: Signature) -> None:
        """The model is loaded."""
        self._signature, self._keys = signature, Keys(self._identity, signature)
        if self._store is not None:
            self._store.start()

    def counts(self) -> Counts:
        """What a scrape shows, now."""
        store = self._store
        return Counts(
            dict(self._by_source),
            self._memory.size,
            len(self._memory),
            self._memory.evicted,
            None if store is None else store.failures,
            store is not None and store.asked,
        )

    async def emptied(self) -> None:
        """Wait until no execution is under way or about to be."""
        while self._flights:
            await asyncio.wait([flight.over for flight in self._flights.values()])

    async def outputs(
        self, asked: Asked, execute: Callable[[], Awaitable[Outputs]]
    ) -> tuple[Outputs, Source]:
        """Kept outputs, or those of an execution, and where they come from.

        Raises:
            RequestError: what `execute` raises; expired or left while it waited for another's.
        """
        assert self._keys is not None
        key = self._keys.key(asked.work)
        kept = self._memory.get(key, self._clock())
        if kept is not None:
            return self._from(Source.MEMORY, kept)
        flight, size = self._flights.get(key), _size(asked.work)
        if flight is None:
            flight = self._flights[key] = Flight()
            return await self._lead(key, flight, asked, execute)
        if self._joined_bytes + size > self._bounds.max_joined_bytes:
            return await self._alone(key, execute)
        self._joined_bytes += size
        try:
            word = await self._follow(key, flight, asked)
        finally:
            self._joined_bytes -= size
        if word is Turn.LEAD:
            return await self._lead(key, flight, asked, execute)
        if word is Turn.ALONE:
            return await self._alone(key, execute)
        return self._from(Source.FLIGHT, word)

    async def _lead(
        self,
        key: bytes,
        flight: Flight,
        asked: Asked,
        execute: Callable[[], Awaitable[Outputs]],
    ) -> tuple[Outputs, Source]:
        try:
            outputs = await self._from_store(key, asked)
            source = Source.STORE
            if outputs is None:
                outputs, source = await self._alone(key, execute)
            else:
                self._by_source[source] += 1
        except OWN_ENDS:
            self._pass_on(key, flight)
            raise
        except BaseException:
            self._land(key, flight, Turn.ALONE)
            raise
        self._land(key, flight, outputs)
        return outputs, source

    async def _follow(self, key: bytes, flight: Flight, asked: Asked) -> Word:
        told = flight.join()
        try:
            return await _bounded(told, asked, self._clock)
        except BaseException:
            # cancel gives it up, unless it has been told something that it did not hear
            if not told.cancel() and told.result() is Turn.LEAD:
                self._pass_on(key, flight)
            raise

    async def _alone(
        self, key: bytes, execute: Callable[[], Awaitable[Outputs]]
    ) -> tuple[Outputs, Source]:
        self._by_source[Source.DEVICE] += 1
        outputs = await execute()
        self._keep(key, outputs, self._bounds.ttl_s)
        store, signature = self._store, self._signature
        if store is not None and signature is not None and store.asked:
            store.put(key, encoded(key, outputs, signature), self._bounds.ttl_s)
        return outputs, Source.DEVICE

    async def _from_store(self, key: bytes, asked: Asked) -> Outputs | None:
        store = self._store
        if store is None or self._signature is None:
            return None
        if not store.asked:
            store.start()
            return None
        lookup = asyncio.ensure_future(store.get(key))
        try:
            found = await _bounded(lookup, asked, self._clock)
        finally:
            lookup.cancel()
        if found is None:
            return None
        outputs = decoded(key, found.value, asked.work, self._signature)
        if outputs is not None:
            self._keep(key, outputs, min(found.left_s, self._bounds.ttl_s))
        return outputs

    def _from(self, source: Source, outputs: Outputs) -> tuple[Outputs, Source]:
        self._by_source[source] += 1
        return outputs, source

    def _keep(self, key: bytes, outputs: Outputs, ttl_s: float) -> None:
        self._memory.put(key, Kept(outputs, size_of(outputs), self._clock() + ttl_s))

    def _land(self, key: bytes, flight: Flight, word: Word) -> None:
        del self._flights[key]
        flight.land(word)

    def _pass_on(self, key: bytes, flight: Flight) -> None:
        if not flight.hand_over():
            del self._flights[key]


async def _bounded(awaited: asyncio.Future[T], asked: Asked, clock: Callable[[], float]) -> T:
    """What is awaited, unless the request's client leaves or its deadline passes before."""
    loop = asyncio.get_running_loop()
    first: asyncio.Future[None] = loop.create_future()

    def end(error: RequestError | None, _: object = None) -> None:
        if not first.done():
            first.set_result(None) if error is None else first.set_exception(error)

    awaited.add_done_callback(partial(end, None))
    timer = None
    if asked.due_s is not None:
        expired = ExpiredError("the deadline passed while it waited")
        timer = loop.call_later(asked.due_s - clock(), end, expired)
    asked.connection.on_lost = lambda: end(DisconnectedError())
    try:
        await first
        return awaited.result()
    finally:
        asked.connection.on_lost = None
        if timer is not None:
            timer.cancel()


def _size(work: Work) -> int:
    return sum([len(numbers) * numbers.itemsize for numbers in work.inputs.values()])
