"""Evicts the most loaded replicas where connections stay with them, so that others get some.

A pod that stops ends its connections; their clients connect again, to one of the replicas that are
ready then. So a replica is evicted where all of this holds:

    uneven     one has far more requests than an even share, or far fewer, beyond chance
    late       more requests are late than the percentile allows, at the most loaded replica too
    spare      the remaining ready replicas would carry all arrivals below the ceiling
    better     far fewer requests are expected to meet a replica that has more than it carries

It is repeated with the shares that are measured after the last change of the ready replicas, within
a budget. A few connections cannot be spread: then no eviction is expected to be better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.frozen import replace
from headroom.scaling.replacement.budget import REBALANCING, Budget
from headroom.scaling.replacement.late_load import Shares, late_load, late_load_after
from headroom.scaling.replica_defect import Defect, Replacement, ReplacementStep

SETTLED_S = 8.0
"""Until their clients have connected again, the shares of the ready replicas say nothing."""
LONGEST_S = 60.0
"""Window of the shares."""
CERTAIN = 14.0
"""Chance leaves a replica with as many or few requests once in so many e-folds."""
LATE_DEVIATIONS = 3.0
LEAST_GAIN, GAIN_SHARE = 0.1, 0.25
"""An eviction must free this share of all requests, and this part of the late load."""
MOST_AT_ONCE = 4
DELETED_WITHIN_S, REFUSED_S = 60.0, 600.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Load:
    """What each ready replica did since one of them last ended, [replicas]."""

    replicas: tuple[str, ...]
    settled: NDArray[np.bool_]
    """Those that have been ready for long enough to have requests."""
    arrived: Shares
    ended: Shares
    late: Shares
    weights: Shares
    """In proportion to the connections: arrivals, or requests in flight of clients that wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a tick knows about rebalancing."""

    now_s: float
    ready: frozenset[str]
    current: int
    usable: bool
    """Whether connections stay with replicas and the measured shares count."""
    allowed: float
    """Share of the requests that may be late."""
    connections: int
    carried: float
    """Share of all requests that one replica answers in time; above 1 for few requests."""
    enough: int
    """The fewest replicas that carry all arrivals below the ceiling."""
    may_surge: bool
    """Whether more replicas are allowed and would find a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalancer:
    """The evictions in progress, and those that were made."""

    ready: frozenset[str] = frozenset()
    since_s: float = 0.0
    """When a ready replica last ended: until then its connections stayed."""
    victims: tuple[str, ...] = ()
    """Replicas to evict; the first is being evicted."""
    begun_s: float = 0.0
    detail: str = ""
    budget: Budget = field(default_factory=lambda: Budget(limits=REBALANCING))
    refused_until_s: float = float("-inf")
    wanted: int = 0
    """Replicas that must be ready before an eviction helps; 0: no more than there are."""

    def watching(self, ready: frozenset[str], now_s: float) -> Rebalancer:
        """Return the record with the replicas that are ready now."""
        if ready == self.ready:
            return self
        victims = tuple(uid for uid in self.victims if uid in ready)
        begun_s = self.begun_s if victims == self.victims else now_s
        since_s = now_s if not self.ready or self.ready - ready else self.since_s
        return replace(self, ready=ready, since_s=since_s, victims=victims, begun_s=begun_s)

    def settled_s(self, now_s: float) -> float:
        """Seconds since a ready replica last ended."""
        return now_s - self.since_s

    def step(self, now: Situation, load: Load | None) -> Rebalancer:
        """Return the record after this tick: the next eviction, or none."""
        if self.victims:
            if not now.usable:
                return replace(self, victims=())
            if now.now_s - self.begun_s >= DELETED_WITHIN_S:
                return replace(self, victims=(), refused_until_s=now.now_s + REFUSED_S)
            return self
        kept = replace(self, wanted=0) if self.wanted else self
        if load is None or not now.usable or now.now_s < self.refused_until_s:
            return kept
        found = Spread.of(now, load)
        if found is None:
            return kept
        ready = len(load.replicas)
        budget = min(MOST_AT_ONCE, self.budget.left(now.now_s, now.current))
        evicted = found.evicted(min(budget, ready - now.enough))
        if not evicted:
            more = found.more(budget, now.enough) if now.may_surge else 0
            return replace(self, wanted=ready + more) if more else kept
        spent = self.budget
        for _ in range(evicted):
            spent = spent.spend(now.now_s)
        victims = tuple(load.replicas[place] for place in found.order[:evicted])
        return replace(
            self, victims=victims, detail=found.detail, begun_s=now.now_s, budget=spent, wanted=0
        )

    @property
    def shown(self) -> Replacement | None:
        """Return the eviction in progress."""
        if not self.victims:
            return None
        return Replacement(
            pod=self.victims[0],
            defect=Defect.OVERLOADED,
            step=ReplacementStep.DELETE,
            factor=None,
            since_s=self.begun_s,
            detail=self.detail,
            action="it is evicted, so that its connections are spread",
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """Connections that are spread unevenly, while requests are late."""

    order: NDArray[np.intp]
    """The most loaded replica first."""
    shares: Shares
    """In that order."""
    connections: int
    carried: float

    @classmethod
    def of(cls, now: Situation, load: Load) -> Spread | None:
        """Return what is uneven beyond chance where that makes requests late; else None."""
        total, replicas = float(load.weights.sum()), len(load.replicas)
        if replicas != len(now.ready) or not load.settled.any() or total <= 0.0:
            return None
        if not uneven(load.arrived[load.settled]):
            return None
        if load.late.sum() <= _allowed(now.allowed, load.ended.sum()):
            return None
        late = load.late > _allowed(now.allowed, load.ended)
        order = np.argsort(-load.weights, kind="stable")
        if not late[order[0]]:
            return None
        shares: Shares = load.weights[order] / total
        carried = min(now.carried, _LESS * float(shares[late[order]].min()))
        return cls(order=order, shares=shares, connections=now.connections, carried=carried)

    def evicted(self, most: int, more: int = 0) -> int:
        """Return how many evictions are best if there are `more` idle ones; 0 if none is worth it."""
        most = min(most, len(self.shares) - 1)
        if most < 1:
            return 0
        shares = np.append(self.shares, np.zeros(more)) if more else self.shares
        expected = [
            late_load_after(shares, count, self.connections, self.carried)
            for count in range(1, most + 1)
        ]
        best = int(np.argmin(expected))
        before = late_load(shares, self.carried)
        gain = before - expected[best]
        return best + 1 if gain >= max(LEAST_GAIN, GAIN_SHARE * before) else 0

    def more(self, budget: int, enough: int) -> int:
        """Return how many more replicas make an eviction worth it; 0 if too many would be needed."""
        ready = len(self.shares)
        for more in range(1, max(MOST_MORE, ready // 4) + 1):
            if self.evicted(min(budget, ready + more - enough), more):
                return more
        return 0

    @property
    def detail(self) -> str:
        """Return what is uneven, as text."""
        replicas = len(self.shares)
        few = int((self.shares < _HARDLY_ANY / replicas).sum())
        text = f"has {100 * self.shares[0]:.0f}% of the load"
        return f"{text} and {few} of {replicas} have hardly any" if few else text


MOST_MORE = 2
_HARDLY_ANY = 0.2
"""Of an even share."""
_LESS = 0.95
"""Of the share of a replica whose requests are late: it is not carried."""


def uneven(arrived: Shares) -> bool:
    """Whether chance does not explain the requests of some replica (Chernoff, Poisson)."""
    even = float(arrived.mean())
    ratios = np.maximum(arrived, 1e-9) / even
    exponents = arrived * np.log(ratios) - arrived + even
    return bool(exponents.max() >= CERTAIN + math.log(len(arrived)))


def _allowed(share: float, ended: Shares | float) -> Shares:
    expected: Shares = share * np.asarray(ended)
    return expected + LATE_DEVIATIONS * np.sqrt(np.maximum(1.0, expected))
