"""Cached answers of generated text: equal requests in memory and Redis, similar ones if configured.

Everything runs on the event loop's thread. Nothing here fails a request or delays it for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from headroom_server.caching.breaker import Breaker
from headroom_server.caching.generated import CachedAnswer, decoded, encoded, size_of
from headroom_server.caching.levels import LevelCounts, LevelOptions, Levels

log = logging.getLogger("headroom_server")

EMBED_S = 0.1
"""Maximum time for a question's embedding; without it the request is generated."""


class GeneratedSource(StrEnum):
    """Source of an answer."""

    MEMORY = "memory"
    STORE = "redis"
    SEMANTIC = "semantic"
    ENGINE = "engine"


class Hit(NamedTuple):
    """A cached answer."""

    answer: CachedAnswer
    source: GeneratedSource
    similarity: float = 1.0


class GenerationCacheCounts(NamedTuple):
    """Cache statistics for metrics."""

    by_source: Mapping[GeneratedSource, int]
    """Answers by source; requests that were generated, for `ENGINE`."""
    levels: LevelCounts
    similar_entries: int | None
    """None: nothing is found by similarity."""
    embedding_failures: int


class Question(NamedTuple):
    """Question of a request."""

    key: bytes
    """Key of equal requests."""
    scope: bytes | None = None
    """Scope of requests whose answers may be given in place of each other if their texts are
    similar; None: none."""
    text: str = ""
    tenant: str = ""


class Similar(NamedTuple):
    """A similar answer, and the question's vector under which a new one is kept."""

    answer: CachedAnswer | None
    similarity: float
    keep: Callable[[CachedAnswer], None] | None


class SimilarAnswers(Protocol):
    """Answers by embedding."""

    def look(self, scope: bytes, numbers: Sequence[float], now_s: float, tenant: str) -> Similar:
        """Return the answer to a similar question, if there is one, or how to keep a new one."""

    def __len__(self) -> int:
        """Return the number of entries."""


Embed = Callable[[str, str], Awaitable[Sequence[float]]]
"""Returns the embedding of a text for a tenant; may raise any exception, and may hang."""


class CacheLookup(NamedTuple):
    """The result of a look-up; `keep` is for the answer that is generated after a miss."""

    hit: Hit | None
    keep: Callable[[CachedAnswer], None]


class GenerationCache:
    """One model's cached answers."""

    def __init__(
        self, options: LevelOptions, similar: tuple[SimilarAnswers, Embed] | None = None
    ) -> None:
        self._clock = clock = options.clock
        self._levels: Levels[CachedAnswer] = Levels(options, size_of)
        self._similar = similar
        self._breaker = Breaker()
        self._breaker.probed(clock(), ok=True)
        self._by_source = dict.fromkeys(GeneratedSource, 0)
        self._embedding_failures = 0

    def start(self) -> None:
        """Connect to the second level, on the running loop."""
        self._levels.start()

    def counts(self) -> GenerationCacheCounts:
        """Return the current statistics for metrics."""
        return GenerationCacheCounts(
            dict(self._by_source),
            self._levels.counts(),
            None if self._similar is None else len(self._similar[0]),
            self._embedding_failures,
        )

    async def look(self, question: Question) -> CacheLookup:
        """Return a cached answer, or how to keep the one that will be generated."""
        hit, keep_similar = await self._find(question)
        source = GeneratedSource.ENGINE if hit is None else hit.source
        self._by_source[source] += 1

        def keep(answer: CachedAnswer) -> None:
            self._levels.keep(question.key, answer, encoded, question.tenant)
            if keep_similar is not None:
                keep_similar(answer)

        return CacheLookup(hit, keep)

    async def _find(
        self, question: Question
    ) -> tuple[Hit | None, Callable[[CachedAnswer], None] | None]:
        key = question.key
        kept = self._levels.remembered(key)
        if kept is not None:
            return Hit(kept, GeneratedSource.MEMORY), None
        kept = await self._levels.stored(key, lambda stored: decoded(key, stored), question.tenant)
        if kept is not None:
            return Hit(kept, GeneratedSource.STORE), None
        if self._similar is None or question.scope is None:
            return None, None
        answers, embed = self._similar
        numbers = await self._embedded(embed, question)
        if numbers is None:
            return None, None
        found = answers.look(question.scope, numbers, self._clock(), question.tenant)
        if found.answer is None:
            return None, found.keep
        return Hit(found.answer, GeneratedSource.SEMANTIC, found.similarity), None

    async def _embedded(self, embed: Embed, question: Question) -> Sequence[float] | None:
        if not self._breaker.closed and not self._breaker.probe(self._clock()):
            return None
        try:
            async with asyncio.timeout(EMBED_S):
                numbers = await embed(question.text, question.tenant)
        except Exception as error:  # noqa: BLE001 - whatever it is, the engine can answer
            self._embedding_failures += 1
            if self._breaker.closed:
                if self._breaker.failed(self._clock()):
                    log.warning("embeddings are not used for now: %r", error)
            else:
                self._breaker.probed(self._clock(), ok=False)
            return None
        if self._breaker.closed:
            self._breaker.answered()
        else:
            self._breaker.probed(self._clock(), ok=True)
        return numbers
