"""Answers to similar questions: by scope (what must be equal), then by cosine. Pure.

A scope is a tenant, a model and everything of a request but its last text. Entries leave when they
are old, and in the order of `scheduling/eviction_order.py` when they are too many, or too large
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from headroom_server.caching.generated import CachedAnswer, size_of
from headroom_server.caching.generation_cache import Similar
from headroom_server.caching.similarity import SimilarVectors, Vector, unit
from headroom_server.scheduling.eviction_order import EvictionOrder

SCOPE_BYTES = 1024
"""Memory of a scope's objects. Nearly every question with numbers has a scope of its own."""
NUMBER_BYTES = 8
"""Memory of a vector's number: two, and the room of a scope may be four times what is in use."""


class SemanticBounds(NamedTuple):
    """Bounds on similarity, and on the number and age of kept answers."""

    threshold: float
    entries: int
    ttl_s: float
    max_bytes: int


class SimilarAnswer(NamedTuple):
    """An answer to a question whose embedding has this cosine with the one asked."""

    answer: CachedAnswer
    similarity: float


class _Entry:
    __slots__ = ("answer", "row", "scope", "size", "until_s")

    def __init__(
        self, scope: bytes, row: int, answer: CachedAnswer, size: int, until_s: float
    ) -> None:
        self.scope = scope
        self.row = row
        self.answer = answer
        self.size = size
        self.until_s = until_s


class _Scope:
    __slots__ = ("entries", "vectors")

    def __init__(self, dimension: int) -> None:
        self.vectors = SimilarVectors(dimension)
        self.entries: list[_Entry] = []
        """Entries by row."""


class SemanticAnswers:
    """The entries of all scopes."""

    def __init__(self, bounds: SemanticBounds) -> None:
        self._bounds = bounds
        self._scopes: dict[bytes, _Scope] = {}
        self._order: EvictionOrder[_Entry] = EvictionOrder(bounds.max_bytes)
        self.size = 0
        """Bytes of all entries."""

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._order)

    def look(self, scope: bytes, numbers: Sequence[float], now_s: float, tenant: str) -> Similar:
        """Return the answer to a similar question, or how to keep a new one."""
        vector = unit(numbers)
        if vector is None:
            return Similar(None, 0.0, None)
        found = self.find(scope, vector, now_s)
        if found is not None:
            return Similar(found.answer, found.similarity, None)
        return Similar(None, 0.0, partial(self.put, scope, vector, now_s, tenant=tenant))

    def find(self, scope: bytes, vector: Vector, now_s: float) -> SimilarAnswer | None:
        """Return the answer to the most similar question, if it is similar enough."""
        found = self._scopes.get(scope)
        if found is None or found.vectors.dimension != vector.size:
            return None
        least = self._bounds.threshold
        while (nearest := found.vectors.nearest(vector, least)) is not None:
            entry = found.entries[nearest.row]
            if entry.until_s > now_s:
                self._order.use(entry)
                return SimilarAnswer(entry.answer, min(1.0, nearest.similarity))
            self._remove(entry)
        return None

    def put(
        self, scope: bytes, vector: Vector, now_s: float, answer: CachedAnswer, *, tenant: str
    ) -> None:
        """Keep an answer of a tenant, unless it alone is too large."""
        size = size_of(answer) + NUMBER_BYTES * vector.size + SCOPE_BYTES
        if size > self._bounds.max_bytes:
            return
        found = self._scopes.get(scope)
        if found is None or found.vectors.dimension != vector.size:
            for old in [] if found is None else list(found.entries):  # another embedding model
                self._remove(old)
            found = self._scopes[scope] = _Scope(vector.size)
        entries, most = self._bounds.entries, self._bounds.max_bytes
        while len(self) >= entries or self.size + size > most:
            oldest = self._order.oldest()
            expired = oldest.until_s <= now_s
            self._remove(oldest if expired else self._order.next_for(tenant))
        found = self._scopes.setdefault(scope, found)
        row = found.vectors.add(vector)
        entry = _Entry(scope, row, answer, size, now_s + self._bounds.ttl_s)
        found.entries.append(entry)
        self.size += size
        self._order.take(tenant, size)
        self._order.keep(entry, tenant)

    def _remove(self, entry: _Entry) -> None:
        self._order.give_back(self._order.remove(entry), entry.size)
        self.size -= entry.size
        found = self._scopes[entry.scope]
        moved = found.vectors.remove(entry.row)
        last = found.entries.pop()
        if moved != entry.row:
            last.row = entry.row
            found.entries[entry.row] = last
        if not found.entries:
            del self._scopes[entry.scope]
