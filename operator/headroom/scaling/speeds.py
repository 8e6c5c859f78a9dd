"""How slow each replica is beside the others: accelerators that differ, a neighbour that is loud.

A slow replica under the same share of the load forms larger batches than a fast one. A line through
the pairs of both takes speed for size: with half of the replicas 1.5 times as slow it was seen to
lose three quarters of the fixed part, and half of what a full batch carries. So each replica has a
factor on one line (a fixed effect), and only how its own batches differ in size tells the slope.
Factors and line are fitted in turn, once a tick, by alternating least squares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from headroom.scaling.executions import Executions
from headroom.scaling.line_fit import NOTHING, Sums, line

HALF_LIFE_S = 300.0
LEAST_DIFFERENCE, LEAST_DEVIATIONS = 0.05, 4.0
"""A replica differs when it does by this much, and by as many deviations of its mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds:
    """What each replica executed, and the factors of the last fit."""

    sums: Mapping[str, Sums] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)
    """How many times as long as the mean replica each takes; their mean is 1."""

    def observe(
        self, intervals: Iterable[Executions], elapsed_s: float, cv: float | None
    ) -> Speeds:
        """Return them with intervals added; a replica's past fades as it is heard again.

        `cv` says what chance explains; while it is None nobody differs.
        """
        fade = 0.5 ** (max(0.0, elapsed_s) / HALF_LIFE_S)
        sums = dict(self.sums)
        for replica, batches, size, mean_s in intervals:
            weight, sizes, squared, seconds, products = sums.get(replica, NOTHING)
            items = batches * size
            sums[replica] = (
                fade * weight + batches,
                fade * sizes + items,
                fade * squared + items * size,
                fade * seconds + batches * mean_s,
                fade * products + items * mean_s,
            )
        return Speeds(sums=sums, factors={} if cv is None else _factors(sums, self.factors, cv))

    def slowest(self, share: float) -> float:
        """Return the factor that no more than this share of the replicas exceed; at least 1."""
        slow = sorted(self.factors.values(), reverse=True)
        return max(1.0, slow[int(share * len(slow))]) if slow else 1.0

    def only(self, replicas: AbstractSet[str]) -> Speeds:
        """Return them with no other replica remembered."""
        if self.sums.keys() <= replicas:
            return self
        return Speeds(
            sums={one: sums for one, sums in self.sums.items() if one in replicas},
            factors={one: factor for one, factor in self.factors.items() if one in replicas},
        )


def _factors(sums: Mapping[str, Sums], last: Mapping[str, float], cv: float) -> dict[str, float]:
    """Return the factors by the line that the last ones give; none where nobody differs.

    Worked: cv 1 and 400 executions, a mean known to 0.05: nobody differs within 0.8 to 1.2.
    """
    fixed_s, per_item_s = line(_together(sums, last))
    fixed_squared, cross, per_item_squared = fixed_s**2, 2 * fixed_s * per_item_s, per_item_s**2
    chance, factors, differ = (LEAST_DEVIATIONS * cv) ** 2, {}, False
    for replica, (weight, sizes, squared, seconds, products) in sums.items():
        expected = fixed_squared * weight + cross * sizes + per_item_squared * squared
        factor = (fixed_s * seconds + per_item_s * products) / expected
        apart = factor - 1.0
        if abs(apart) > LEAST_DIFFERENCE and apart * apart * weight > chance:
            factors[replica], differ = factor, True
        else:
            factors[replica] = 1.0
    if not differ:
        return {}
    mean = sum(factors.values()) / len(factors)
    return {replica: factor / mean for replica, factor in factors.items()}


def _together(sums: Mapping[str, Sums], factors: Mapping[str, float]) -> Sums:
    """Add up all replicas, each as if it had the speed of the mean one."""
    if not factors:
        return tuple(map(sum, zip(*sums.values(), strict=True)))
    weight = sizes = squared = seconds = products = 0.0
    for replica, (one, size, square, took_s, product) in sums.items():
        factor = factors.get(replica, 1.0)
        weight, sizes, squared = weight + one, sizes + size, squared + square
        seconds, products = seconds + took_s / factor, products + product / factor
    return weight, sizes, squared, seconds, products
