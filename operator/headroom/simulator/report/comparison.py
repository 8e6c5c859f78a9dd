"""Compares autoscalers: means over seeds with intervals, Pareto fronts, and which are bounds."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Protocol, TypeVar

_DEGREES = (*range(1, 31), 40, 60, 120)
_T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
    *(2.021, 2.000, 1.980),
)
"""97.5 % points by degrees of freedom (Fisher and Yates, table III)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One figure over the seeds of a run."""

    mean: float
    half_width: float | None = None
    """The 95 % interval is mean +- this; None with one seed, or with an infinite value."""


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of at least one value; one infinite value makes it infinite.

    Values 1, 2, 3 give 2 +- 4.303 x 1 / sqrt(3) = 2 +- 2.484.
    """
    if not all(map(math.isfinite, values)):
        return Estimate(math.nan if any(map(math.isnan, values)) else math.inf)
    if len(values) == 1:
        return Estimate(float(values[0]))
    half_width = t_975(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Estimate(fmean(values), half_width)


def t_975(degrees: int) -> float:
    """Return the 97.5 % point for at least one degree of freedom.

    Between two rows of the table it uses the one with fewer degrees, so intervals are rather too
    wide.
    """
    return _T_975[bisect_right(_DEGREES, degrees) - 1]


OURS = "headroom"
CLAIRVOYANT = "clairvoyant"
"""The reference of cost: knows all arrivals, and pays for cold starts."""
BOUNDS = frozenset({CLAIRVOYANT, "oracle", "ideal-reactive"})
"""They know what no autoscaler can know, so they are never on the front."""


def family(autoscaler: str) -> str:
    """Return the name without its settings: "hpa target=4" and "hpa(4)" are hpa."""
    return autoscaler.replace("(", " ").replace("[", " ").replace(",", " ").split(" ", 1)[0]


def is_bound(autoscaler: str) -> bool:
    """Return whether this is a bound, not an autoscaler."""
    return family(autoscaler) in BOUNDS


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
    """Return whether one misses and costs no more than the other, and less in one of both."""
    no_worse = one.misses <= other.misses and one.cost <= other.cost
    return no_worse and (one.misses < other.misses or one.cost < other.cost)


def front(points: Sequence[P]) -> tuple[P, ...]:
    """Return the points that no other dominates, cheapest first; equal points are all kept."""
    kept: list[P] = []
    for point in sorted(points, key=lambda each: (each.cost, each.misses)):
        # Sorted by cost, so only the last point kept can dominate this one.
        if not kept or not dominates(kept[-1], point):
            kept.append(point)
    return tuple(kept)
