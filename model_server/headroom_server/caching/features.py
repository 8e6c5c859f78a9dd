"""Feature cache: memory, then the second level, then one computation per key.

Errors are never cached. Everything runs on the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from headroom_server.caching.feature_values import (
    MAX_VALUE_BYTES,
    FeatureInput,
    FeatureKind,
    Numbers,
    decoded,
    encoded,
    key_of,
    numbers_of,
    size_of,
)
from headroom_server.caching.flights import OWN_ENDS, Flight, FlightResult, FollowerRole
from headroom_server.caching.lru import CachedValue, Lru
from headroom_server.caching.store import GuardedStore

MAX_FOLLOWERS = 1024
"""More compute on their own, by the bounds that hold without this cache."""

Compute: TypeAlias = Callable[[], Awaitable[Iterable[float]]]


class FeatureSource(StrEnum):
    """Where a feature comes from."""

    MEMORY = "memory"
    STORE = "redis"
    FLIGHT = "flight"
    """The computation of an equal one that was already running."""
    COMPUTED = "computed"


class FeatureCounts(NamedTuple):
    """Cache statistics for metrics."""

    by_source: Mapping[tuple[FeatureKind, FeatureSource], int]
    """Features by source; computations that were started, for `COMPUTED`."""
    size: int
    entries: int
    evicted: int
    store_failures: int | None
    """None without a second level."""
    store_asked: bool


class FeatureCache:
    """All features of one process. It may share a `store` with other caches."""

    def __init__(
        self,
        *,
        max_bytes: int,
        ttl_s: float,
        clock: Callable[[], float],
        store: GuardedStore | None = None,
    ) -> None:
        self._ttl_s = ttl_s
        self._clock = clock
        self._store = store
        self._memory: Lru[Numbers] = Lru(max_bytes)
        self._flights: dict[bytes, Flight[Numbers]] = {}
        self._followers = 0
        self._by_source = {(kind, source): 0 for kind in FeatureKind for source in FeatureSource}

    def start(self) -> None:
        """Connect to the second level, on the running loop."""
        if self._store is not None:
            self._store.start()

    @property
    def running(self) -> int:
        """Keys whose feature is looked up in the store or computed."""
        return len(self._flights)

    def counts(self) -> FeatureCounts:
        """Return the current statistics for metrics."""
        store, memory = self._store, self._memory
        return FeatureCounts(
            dict(self._by_source),
            memory.size,
            len(memory),
            memory.evicted,
            None if store is None else store.failures,
            store is not None and store.asked,
        )

    async def feature(self, asked: FeatureInput, compute: Compute) -> Numbers:
        """Return the numbers of an input; raises whatever `compute` raises."""
        key = key_of(asked)
        kept = self._memory.get(key, self._clock())
        if kept is not None:
            return self._from(asked, FeatureSource.MEMORY, kept)
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = Flight()
            return await self._lead(key, flight, asked, compute)
        if self._followers >= MAX_FOLLOWERS:
            return await self._alone(key, asked, compute)
        word = await self._follow(key, flight)
        if word is FollowerRole.LEAD:
            return await self._lead(key, flight, asked, compute)
        if word is FollowerRole.ALONE:
            return await self._alone(key, asked, compute)
        return self._from(asked, FeatureSource.FLIGHT, word)

    async def _lead(
        self, key: bytes, flight: Flight[Numbers], asked: FeatureInput, compute: Compute
    ) -> Numbers:
        try:
            numbers = await self._from_store(key, asked)
            if numbers is None:
                numbers = await self._alone(key, asked, compute)
        except OWN_ENDS:
            self._pass_on(key, flight)
            raise
        except BaseException:
            del self._flights[key]
            flight.land(FollowerRole.ALONE)
            raise
        del self._flights[key]
        flight.land(numbers)
        return numbers

    async def _follow(self, key: bytes, flight: Flight[Numbers]) -> FlightResult[Numbers]:
        follower = flight.join()
        self._followers += 1
        try:
            return await follower
        except BaseException:
            # cancelled in the turn in which it was to lead: the future was resolved before
            if not follower.cancelled() and follower.result() is FollowerRole.LEAD:
                self._pass_on(key, flight)
            raise
        finally:
            self._followers -= 1

    async def _alone(self, key: bytes, asked: FeatureInput, compute: Compute) -> Numbers:
        self._by_source[asked.kind, FeatureSource.COMPUTED] += 1
        numbers = numbers_of(asked.kind, await compute())
        if len(numbers) * numbers.itemsize <= MAX_VALUE_BYTES:
            self._keep(key, numbers, self._ttl_s)
            store = self._store
            if store is not None and store.asked:
                store.put(key, encoded(key, numbers), self._ttl_s)
        return numbers

    async def _from_store(self, key: bytes, asked: FeatureInput) -> Numbers | None:
        store = self._store
        if store is None:
            return None
        if not store.asked:
            store.start()
            return None
        found = await store.get(key)
        numbers = None if found is None else decoded(key, asked.kind, found.value)
        if found is None or numbers is None:
            return None
        self._keep(key, numbers, min(found.left_s, self._ttl_s))
        return self._from(asked, FeatureSource.STORE, numbers)

    def _from(self, asked: FeatureInput, source: FeatureSource, numbers: Numbers) -> Numbers:
        self._by_source[asked.kind, source] += 1
        return numbers

    def _keep(self, key: bytes, numbers: Numbers, ttl_s: float) -> None:
        self._memory.put(key, CachedValue(numbers, size_of(numbers), self._clock() + ttl_s))

    def _pass_on(self, key: bytes, flight: Flight[Numbers]) -> None:
        if not flight.hand_over():
            del self._flights[key]


class CachedEmbedder:
    """Embeds texts with a model, each text of a tenant once while its embedding is cached."""

    def __init__(
        self,
        features: FeatureCache,
        identity: str,
        embed: Callable[[str], Awaitable[Sequence[float]]],
    ) -> None:
        self._features = features
        self._identity = identity
        self._embed = embed

    async def __call__(self, text: str, tenant: str) -> Sequence[float]:
        """Return a text's embedding; raises whatever the model's call raises."""
        asked = FeatureInput(FeatureKind.EMBEDDING, self._identity, tenant, text)
        return await self._features.feature(asked, lambda: self._embed(text))
