"""One model's response cache: memory, then the second level, then one execution per key.

Errors are never cached. A hit needs no place in the queue and no admission. Everything runs on the
event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import NamedTuple, TypeVar

from headroom_server.caching.flights import OWN_ENDS, Flight, FlightResult, FollowerRole
from headroom_server.caching.keys import Keys
from headroom_server.caching.lru import CachedValue, Lru
from headroom_server.caching.store import GuardedStore
from headroom_server.caching.values import decoded, encoded, size_of
from headroom_server.connection import Connection
from headroom_server.device.execution import Outputs
from headroom_server.engine import Work
from headroom_server.errors import DisconnectedError, ExpiredError, RequestError
from headroom_server.tensors import Signature


class AnswerSource(StrEnum):
    """Where an answer comes from."""

    MEMORY = "memory"
    STORE = "redis"
    FLIGHT = "flight"
    """The execution of an equal request that was already running."""
    DEVICE = "device"


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """Cache statistics for metrics."""

    by_source: Mapping[AnswerSource, int]
    """Answers by source; executions that were started, for `DEVICE`."""
    size: int
    entries: int
    evicted: int
    store_failures: int | None
    """None without a second level."""
    store_asked: bool


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits on cached bytes, their age, and the bytes of requests that wait for an equal one."""

    max_bytes: int
    ttl_s: float
    max_joined_bytes: int = 1 << 30


class CacheRequest(NamedTuple):
    """One request: its numbers, its deadline, and its connection."""

    work: Work
    due_s: float | None
    connection: Connection


class Cache:
    """Usable once `serve` has set the signature. Several caches may share a `store`."""

    def __init__(
        self,
        identity: str,
        bounds: Bounds,
        clock: Callable[[], float],
        store: GuardedStore | None = None,
    ) -> None:
        self._identity = identity
        self._bounds = bounds
        self._clock = clock
        self._store = store
        self._memory: Lru[Outputs] = Lru(bounds.max_bytes)
        self._flights: dict[bytes, Flight[Outputs]] = {}
        self._joined_bytes = 0
        self._signature: Signature | None = None
        self._keys: Keys | None = None
        self._by_source = dict.fromkeys(AnswerSource, 0)

    def serve(self, signature: Signature) -> None:
        """Set the signature of the loaded model."""
        self._signature, self._keys = signature, Keys(self._identity, signature)
        if self._store is not None:
            self._store.start()

    def counts(self) -> CacheCounts:
        """Return the current statistics for metrics."""
        store = self._store
        return CacheCounts(
            dict(self._by_source),
            self._memory.size,
            len(self._memory),
            self._memory.evicted,
            None if store is None else store.failures,
            store is not None and store.asked,
        )

    async def wait_idle(self) -> None:
        """Wait until no execution is running or pending."""
        while self._flights:
            await asyncio.wait([flight.over for flight in self._flights.values()])

    async def outputs(
        self, request: CacheRequest, execute: Callable[[], Awaitable[Outputs]]
    ) -> tuple[Outputs, AnswerSource]:
        """Return cached outputs or those of an execution, with their source.

        Raises:
            RequestError: raised by `execute`, or the request expired or left while it waited.
        """
        assert self._keys is not None
        key = self._keys.key(request.work)
        kept = self._memory.get(key, self._clock())
        if kept is not None:
            return self._from(AnswerSource.MEMORY, kept)
        flight, size = self._flights.get(key), _size(request.work)
        if flight is None:
            flight = self._flights[key] = Flight()
            return await self._lead(key, flight, request, execute)
        if self._joined_bytes + size > self._bounds.max_joined_bytes:
            return await self._alone(key, execute)
        self._joined_bytes += size
        try:
            word = await self._follow(key, flight, request)
        finally:
            self._joined_bytes -= size
        if word is FollowerRole.LEAD:
            return await self._lead(key, flight, request, execute)
        if word is FollowerRole.ALONE:
            return await self._alone(key, execute)
        return self._from(AnswerSource.FLIGHT, word)

    async def _lead(
        self,
        key: bytes,
        flight: Flight[Outputs],
        request: CacheRequest,
        execute: Callable[[], Awaitable[Outputs]],
    ) -> tuple[Outputs, AnswerSource]:
        try:
            outputs = await self._from_store(key, request)
            source = AnswerSource.STORE
            if outputs is None:
                outputs, source = await self._alone(key, execute)
            else:
                self._by_source[source] += 1
        except OWN_ENDS:
            self._pass_on(key, flight)
            raise
        except BaseException:
            self._land(key, flight, FollowerRole.ALONE)
            raise
        self._land(key, flight, outputs)
        return outputs, source

    async def _follow(
        self, key: bytes, flight: Flight[Outputs], request: CacheRequest
    ) -> FlightResult[Outputs]:
        follower = flight.join()
        try:
            return await _bounded(follower, request, self._clock)
        except BaseException:
            # cancel() fails if the future was resolved before the waiter could see it
            if not follower.cancel() and follower.result() is FollowerRole.LEAD:
                self._pass_on(key, flight)
            raise

    async def _alone(
        self, key: bytes, execute: Callable[[], Awaitable[Outputs]]
    ) -> tuple[Outputs, AnswerSource]:
        self._by_source[AnswerSource.DEVICE] += 1
        outputs = await execute()
        self._keep(key, outputs, self._bounds.ttl_s)
        store, signature = self._store, self._signature
        if store is not None and signature is not None and store.asked:
            store.put(key, encoded(key, outputs, signature), self._bounds.ttl_s)
        return outputs, AnswerSource.DEVICE

    async def _from_store(self, key: bytes, request: CacheRequest) -> Outputs | None:
        store = self._store
        if store is None or self._signature is None:
            return None
        if not store.asked:
            store.start()
            return None
        lookup = asyncio.ensure_future(store.get(key))
        try:
            found = await _bounded(lookup, request, self._clock)
        finally:
            lookup.cancel()
        if found is None:
            return None
        outputs = decoded(key, found.value, request.work, self._signature)
        if outputs is not None:
            self._keep(key, outputs, min(found.left_s, self._bounds.ttl_s))
        return outputs

    def _from(self, source: AnswerSource, outputs: Outputs) -> tuple[Outputs, AnswerSource]:
        self._by_source[source] += 1
        return outputs, source

    def _keep(self, key: bytes, outputs: Outputs, ttl_s: float) -> None:
        self._memory.put(key, CachedValue(outputs, size_of(outputs), self._clock() + ttl_s))

    def _land(self, key: bytes, flight: Flight[Outputs], word: FlightResult[Outputs]) -> None:
        del self._flights[key]
        flight.land(word)

    def _pass_on(self, key: bytes, flight: Flight[Outputs]) -> None:
        if not flight.hand_over():
            del self._flights[key]


async def _bounded(
    awaited: asyncio.Future[T], request: CacheRequest, clock: Callable[[], float]
) -> T:
    """Await a future until the client disconnects or the deadline passes."""
    loop = asyncio.get_running_loop()
    first: asyncio.Future[None] = loop.create_future()

    def end(error: RequestError | None, _: object = None) -> None:
        if not first.done():
            first.set_result(None) if error is None else first.set_exception(error)

    awaited.add_done_callback(partial(end, None))
    timer = None
    if request.due_s is not None:
        expired = ExpiredError("the deadline passed while the request waited")
        timer = loop.call_later(request.due_s - clock(), end, expired)
    request.connection.on_lost = lambda: end(DisconnectedError())
    try:
        await first
        return awaited.result()
    finally:
        request.connection.on_lost = None
        if timer is not None:
            timer.cancel()


def _size(work: Work) -> int:
    return sum([len(numbers) * numbers.itemsize for numbers in work.inputs.values()])
