"""Which points of misses against cost are worth having: those that no other point dominates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar


class Priced(Protocol):
    """Anything with misses and a cost; fewer of both is better."""

    @property
    def misses(self) -> float:
        """Share of the requests that missed, 0..1."""
        ...

    @property
    def cost(self) -> float:
        """GPU-hours."""
        ...


P = TypeVar("P", bound=Priced)


def dominates(one: Priced, other: Priced) -> bool:
    """Whether one is at most as late and at most as costly, and better in at least one of both."""
    no_worse = one.misses <= other.misses and one.cost <= other.cost
    return no_worse and (one.misses < other.misses or one.cost < other.cost)


def front(points: Sequence[P]) -> tuple[P, ...]:
    """Return the points that none dominates, cheapest first; equal points stay together."""
    kept: list[P] = []
    for point in sorted(points, key=lambda each: (each.cost, each.misses)):
        # Sorted by cost, so only the last one kept can dominate, and none later can.
        if not kept or not dominates(kept[-1], point):
            kept.append(point)
    return tuple(kept)
