"""Evicts the most loaded replicas where connections stay with them, so that others get some.

A pod that stops ends its connections; their clients connect again, to one of the replicas that are
ready then. So a replica is evicted where all of this holds:

    uneven     one has far more requests than an even share, or far fewer, beyond chance
    late       more requests are late than the percentile allows, at the most loaded replica too
    spare      the remaining ready replicas would carry all arrivals below the ceiling
    better     far fewer requests are expected to meet a replica that has more than it carries

If idle replicas are lacking, one or two are started first. It is repeated with the shares that are
measured after the last eviction, within a budget. A few connections cannot be spread: then no
eviction is expected to be better.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.scaling.frozen import replace
from headroom.scaling.replacement.budget import REBALANCING, Budget
from headroom.scaling.replacement.spread import Load, Spread
from headroom.scaling.values.replica_defect import Defect, Replacement, ReplacementStep

SETTLED_S = 8.0
"""Time in which clients connect again; until then, shares of ready replicas say nothing."""
LONGEST_S = 60.0
"""Window of the shares."""
MOST_AT_ONCE = 4
"""Evictions before the shares are measured again."""
WANTED_S = 30.0
"""Replicas that evictions need are kept so long, or for a cold start if that is longer: all after
uneven connections last made requests late, those beyond what a tick wants after they were last
wanted. Requests are late in some ticks and not in others, and a replica that is removed before it
is ready has cost a start for nothing."""
EVICTED_WITHIN_S = REFUSED_S = 60.0
"""A pod that is still ready after this could not be evicted; for as long none is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Inputs of rebalancing at one tick."""

    now_s: float
    current: int
    usable: bool
    """Whether the measured shares count: fresh metrics, no rollout, no shortage."""
    may_surge: bool
    """Whether more replicas are allowed."""
    allowed: float
    """Share of the requests that may be late."""
    connections: int
    carried: float
    """Share of the load that one replica answers in time; above 1 for few requests."""
    enough: int
    """The fewest replicas that carry all arrivals below the ceiling."""
    start_s: float = 0.0
    """Least time of a cold start; 0 while unknown."""

    @property
    def kept_s(self) -> float:
        """Time for which replicas that evictions need are kept: until they are settled."""
        return max(WANTED_S, self.start_s + SETTLED_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalancer:
    """The evictions in progress, and those that were made."""

    ready: frozenset[str] = frozenset()
    since_s: float = 0.0
    """Time when a ready replica last ended: until then its connections stayed."""
    victims: tuple[str, ...] = ()
    """Replicas to evict; the first is being evicted."""
    begun_s: float = 0.0
    detail: str = ""
    wanted: int = 0
    """Replicas that must be ready before an eviction helps; 0: no more than there are."""
    wanted_s: float = float("-inf")
    """Time when at least this many were last wanted."""
    budget: Budget = field(default_factory=lambda: Budget(limits=REBALANCING))
    refused_until_s: float = float("-inf")
    uneven_s: float = float("-inf")
    """Time when uneven connections were last seen to make requests late."""

    def watching(self, ready: frozenset[str], now_s: float) -> Rebalancer:
        """Return the record with the replicas that are ready now."""
        if ready == self.ready:
            return self
        victims = tuple(uid for uid in self.victims if uid in ready)
        begun_s = self.begun_s if victims == self.victims else now_s
        since_s = now_s if not self.ready or self.ready - ready else self.since_s
        return replace(self, ready=ready, since_s=since_s, victims=victims, begun_s=begun_s)

    def step(self, now: Situation, load: Load | None) -> Rebalancer:
        """Return the record after this tick; `load` is None while its shares say nothing."""
        if self.victims:
            return self._continued(now)
        kept = self
        if self.wanted and now.now_s - self.uneven_s > now.kept_s:
            kept = replace(self, wanted=0)
        if load is None or not now.usable or now.now_s < self.refused_until_s:
            return kept
        found = Spread.of(load, now.connections, now.carried, now.allowed)
        if found is None:
            return kept
        kept = replace(kept, uneven_s=now.now_s)
        ready = len(load.replicas)
        most = min(MOST_AT_ONCE, self.budget.left(now.now_s, now.current))
        evicted = found.evictions(min(most, ready - now.enough))
        if not evicted:
            more = found.more(most, now.enough) if now.may_surge else 0
            return kept._wanting(ready + more, now) if more else kept
        budget = self.budget
        for _ in range(evicted):
            budget = budget.spend(now.now_s)
        victims = tuple(load.replicas[place] for place in found.order[:evicted])
        return replace(kept, victims=victims, detail=found.detail, begun_s=now.now_s, budget=budget)

    def _wanting(self, wanted: int, now: Situation) -> Rebalancer:
        """Return the record after a tick that wants this many; more that were wanted are kept."""
        if wanted < self.wanted and now.now_s - self.wanted_s <= now.kept_s:
            return self
        return replace(self, wanted=wanted, wanted_s=now.now_s)

    def _continued(self, now: Situation) -> Rebalancer:
        """Return the record while a victim is still ready."""
        if not now.usable:
            return replace(self, victims=())
        if now.now_s - self.begun_s >= EVICTED_WITHIN_S:
            return replace(self, victims=(), refused_until_s=now.now_s + REFUSED_S)
        return self

    @property
    def shown(self) -> Replacement | None:
        """The eviction in progress."""
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
