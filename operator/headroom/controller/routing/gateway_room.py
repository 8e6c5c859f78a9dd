"""Bounds the gateways' memory that the configurations of a namespace may take. Pure.

A namespace may take as much as is free, so that the next one can begin at once. Published
configurations stay, so ten namespaces that take all they may leave nothing to the next. Therefore
each namespace has at least an equal share of all the memory: namespaces that hold more give way to
it, the one that holds most first (max-min fairness).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from headroom.fair_share import FairShare

NAMESPACE_BYTES = 16 << 20
"""Configurations of all services of a namespace: 1000 usual ones, or 80 of the largest, which take
200 MB of a gateway."""
MOST_BYTES = 32 << 20
"""All namespaces together: 400 MB of a gateway's 3.49 GB."""
LEAVES_WITHIN_S = 60.0
"""A service that gives way is led to its replicas before the gateways forget it; one without a
replica is forgotten after this."""


class _Held(NamedTuple):
    namespace: str
    size: int


class Lacking(NamedTuple):
    """Services of a namespace that are not published, or not as they are."""

    size: int
    """Bytes of the first; the others are not built, and count as much."""
    services: int


class GatewayRoom:
    """The bytes of published routes, by key, the newest last."""

    def __init__(self) -> None:
        self.share = MOST_BYTES
        """Least number that each namespace may have."""
        self.leaving: dict[str, float] = {}
        """Time since which services give way, by key; they are held still."""
        self._owed = 0
        self._held: dict[str, _Held] = {}
        self._all = FairShare(MOST_BYTES)

    def divide(self, namespaces: int) -> None:
        """Note how many share the room."""
        self.share = MOST_BYTES // max(1, namespaces)

    def take(self, key: str, namespace: str, size: int) -> None:
        """Add a service, or another version of it, which is as old as the first."""
        known = self._held.get(key)
        if known is not None:
            self._all.give_back(known.namespace, known.size)
        self._held[key] = _Held(namespace, size)
        self._all.take(namespace, size)

    def give_back(self, key: str) -> None:
        """Remove a service."""
        self.leaving.pop(key, None)
        known = self._held.pop(key)
        self._all.give_back(known.namespace, known.size)

    def fits(self, namespace: str, more: int) -> bool:
        """Return whether a namespace may have so many bytes more."""
        is_free = not self._owed and self._all.fits(namespace, more)
        within = self._all.held_by(namespace) + more <= self.share
        return (is_free or within) and self.fits_at_all(namespace, more)

    def fits_at_all(self, namespace: str, more: int) -> bool:
        """Return the same, whatever others should find."""
        mine = self._all.held_by(namespace) + more
        return self._all.held + more <= MOST_BYTES and mine <= NAMESPACE_BYTES

    def has_given_way(self, now_s: float, in_use: Collection[str]) -> list[str]:
        """Return the services of `leaving` to which no client is led any more."""
        return [
            key
            for key, since_s in self.leaving.items()
            if key not in in_use or not 0.0 <= now_s - since_s < LEAVES_WITHIN_S
        ]

    def give_way(self, lacking: Mapping[str, Lacking], now_s: float) -> None:
        """Let services leave, for those that lack room within their namespaces' equal shares.

        Until these have it, no other namespace grows beyond its share.
        """
        self._owed = sum(
            min(one.services, self._share_left(namespace) // one.size) * one.size
            for namespace, one in lacking.items()
            if one.size
        )
        leaving = sum(self._held[key].size for key in self.leaving)
        missing = self._all.held - leaving + self._owed - MOST_BYTES
        self.leaving |= dict.fromkeys(self._newest_of_the_largest(missing), now_s)

    def _newest_of_the_largest(self, missing: int) -> Iterator[str]:
        if missing <= 0:
            return
        newest = defaultdict[str, list[tuple[str, int]]](list)
        for key, (namespace, size) in self._held.items():
            if key not in self.leaving:
                newest[namespace].append((key, size))
        most = [(-sum(size for _, size in held), name) for name, held in newest.items()]
        heapq.heapify(most)
        while missing > 0 and most and -most[0][0] > self.share:
            negative, namespace = most[0]
            key, size = newest[namespace].pop()
            heapq.heapreplace(most, (negative + size, namespace))
            missing -= size
            yield key

    def _share_left(self, namespace: str) -> int:
        share = min(self.share, NAMESPACE_BYTES)
        return max(0, share - self._all.held_by(namespace))
