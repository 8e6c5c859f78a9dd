"""Feature cache: memory, then the second level, then one computation per key.

Errors are never cached. Everything runs on the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
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
from headroom_server.caching.flights import SingleFlight, Source, Steps
from headroom_server.caching.levels import LevelCounts, LevelOptions, Levels

MAX_FOLLOWERS = 1024
"""More compute on their own, by the bounds that hold without this cache."""

Compute: TypeAlias = Callable[[], Awaitable[Iterable[float]]]


class FeatureCounts(NamedTuple):
    """Cache statistics for metrics."""

    by_source: Mapping[tuple[FeatureKind, Source], int]
    """Features by source; computations that were started, for `COMPUTED`."""
    levels: LevelCounts


class FeatureCache:
    """All features of one process."""

    def __init__(self, options: LevelOptions) -> None:
        self._levels: Levels[Numbers] = Levels(options, size_of)
        self._flights: SingleFlight[Numbers] = SingleFlight(MAX_FOLLOWERS)
        self._by_source = {(kind, source): 0 for kind in FeatureKind for source in Source}

    def start(self) -> None:
        """Connect to the second level, on the running loop."""
        self._levels.start()

    @property
    def running(self) -> int:
        """Keys whose feature is looked up in the store or computed."""
        return len(self._flights)

    def counts(self) -> FeatureCounts:
        """Return the current statistics for metrics."""
        return FeatureCounts(dict(self._by_source), self._levels.counts())

    async def feature(self, feature_input: FeatureInput, compute: Compute) -> Numbers:
        """Return the numbers of an input; raises whatever `compute` raises."""
        key, kind, levels = key_of(feature_input), feature_input.kind, self._levels
        kept = levels.remembered(key)
        if kept is not None:
            self._by_source[kind, Source.MEMORY] += 1
            return kept

        async def computed() -> Numbers:
            self._by_source[kind, Source.COMPUTED] += 1
            numbers = numbers_of(kind, await compute())
            if len(numbers) * numbers.itemsize <= MAX_VALUE_BYTES:
                levels.keep(key, numbers, encoded, feature_input.tenant)
            return numbers

        def decode(stored: bytes) -> Numbers | None:
            return decoded(key, kind, stored)

        steps = Steps(lambda: levels.stored(key, decode, feature_input.tenant), computed)
        numbers, source = await self._flights.value(key, steps)
        if source is not Source.COMPUTED:
            self._by_source[kind, source] += 1
        return numbers


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
        feature_input = FeatureInput(FeatureKind.EMBEDDING, self._identity, tenant, text)
        return await self._features.feature(feature_input, lambda: self._embed(text))
