"""The series of caches: what was found, what is kept, and the second level. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headroom_server.caching.flights import Source
from headroom_server.caching.levels import LevelCounts
from headroom_server.telemetry.exposition import counters, head, sample, single


def answers(hits: Mapping[Any, int], misses: int, counts: LevelCounts, model: str) -> Iterator[str]:
    """Yield the series of cached answers; `hits` by level."""
    yield from counters(
        "cache_hits_total", "Requests answered from the cache, by level.", model, "level", hits
    )
    meaning = "Requests that had to be executed."
    yield from single("cache_misses_total", "counter", meaning, model, misses)
    yield from memory("cache", "answers", counts, model)


def features(
    by_source: Iterable[tuple[str, Source, int]], counts: LevelCounts, model: str
) -> Iterator[str]:
    """Yield the series of cached features, by their kind and where they came from."""
    found, name = [*by_source], "feature_cache_hits_total"
    yield head(name, "counter", "Features found in the cache, by kind and level.")
    for kind, source, count in found:
        if source is not Source.COMPUTED:
            yield sample(name, f'{model},kind="{kind}",level="{source}"', count)
    yield from counters(
        "feature_cache_misses_total",
        "Features that had to be computed, by kind.",
        model,
        "kind",
        {kind: n for kind, source, n in found if source is Source.COMPUTED},
    )
    yield from memory("feature_cache", "features", counts, model)


def memory(name: str, what: str, counts: LevelCounts, model: str) -> Iterator[str]:
    """Yield what is kept in the process; `what` in the plural."""
    meaning = f"{what.capitalize()} evicted to make room."
    yield from single(f"{name}_evictions_total", "counter", meaning, model, counts.evicted)
    yield from single(f"{name}_bytes", "gauge", f"Bytes of cached {what}.", model, counts.size)
    yield from single(f"{name}_entries", "gauge", f"Cached {what}.", model, counts.entries)


def second_level(counts: LevelCounts, model: str) -> Iterator[str]:
    """Yield the series of Redis, which all caches of a process share; nothing without it."""
    if counts.store_failures is None:
        return
    meaning = "Redis calls that failed or were late."
    name = "cache_redis_failures_total"
    yield from single(name, "counter", meaning, model, counts.store_failures)
    meaning = "1 if Redis is used, 0 while it is paused after failures."
    yield from single("cache_redis_enabled", "gauge", meaning, model, int(counts.store_enabled))
