"""PURE. What a batch costs: t(b) = fixed + per_item * b seconds, learnt and followed online.

Warm-up times every batch size, which fixes the shape. Later batches are weighed by age (each counts
`FORGET` times the next one), so that a device that slows down is followed within some hundred
batches. Traffic may show one batch size only, which says nothing about the shape: therefore the
warm-up times stay in the fit, scaled to the level of the recent batches. When all batches of one
item take twice as long, both coefficients double.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

FORGET = 0.99
"""Weight of a batch relative to its successor: the last 100 batches hold 63 % of the weight."""


class Sums(NamedTuple):
    """Sufficient statistics of a weighted straight-line fit."""

    n: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    def add(self, x: float, y: float, keep: float = 1.0) -> Sums:
        """One more point, after the weight of all earlier ones is multiplied by `keep`."""
        return Sums(
            keep * self.n + 1.0,
            keep * self.x + x,
            keep * self.y + y,
            keep * self.xx + x * x,
            keep * self.xy + x * y,
        )

    def plus(self, other: Sums, level: float) -> Sums:
        """With the points of another fit, their y multiplied by `level`."""
        return Sums(
            self.n + other.n,
            self.x + other.x,
            self.y + level * other.y,
            self.xx + other.xx,
            self.xy + level * other.xy,
        )

    def line(self) -> tuple[float, float]:
        """Intercept and slope, neither below zero. A single x gives a slope through the origin."""
        spread = self.n * self.xx - self.x * self.x
        if spread <= 1e-9 * self.n * self.xx:
            return 0.0, self.xy / self.xx
        slope = (self.n * self.xy - self.x * self.y) / spread
        intercept = (self.y - slope * self.x) / self.n
        if slope < 0.0:
            return self.y / self.n, 0.0
        if intercept < 0.0:
            return 0.0, self.xy / self.xx
        return intercept, slope


class CostModel(NamedTuple):
    """The fit as a value; `observe` returns the next one."""

    fixed_s: float
    per_item_s: float
    warm: Sums
    recent: Sums = Sums()

    @classmethod
    def from_warm_up(cls, timings: Iterable[tuple[int, float]]) -> CostModel:
        """Fit (items, seconds) pairs of warm batches.

        Raises:
            ValueError: without any pair, or with a pair that is not positive.
        """
        warm = Sums()
        for items, seconds in timings:
            _check(items, seconds)
            warm = warm.add(items, seconds)
        if not warm.n:
            raise ValueError("a cost model needs at least one timed batch; got none")
        return cls(*warm.line(), warm)

    def observe(self, items: int, seconds: float) -> CostModel:
        """Follow one executed batch."""
        _check(items, seconds)
        recent = self.recent.add(items, seconds, FORGET)
        fixed_s, per_item_s = self.warm.line()
        expected = fixed_s * recent.n + per_item_s * recent.x
        return CostModel(*recent.plus(self.warm, recent.y / expected).line(), self.warm, recent)

    def batch_s(self, items: int) -> float:
        """Seconds that a batch of so many items takes."""
        return self.fixed_s + self.per_item_s * items

    def throughput(self, max_batch_size: int) -> float:
        """Items per second in full batches: the most that this replica can carry."""
        return max_batch_size / self.batch_s(max_batch_size)


def _check(items: int, seconds: float) -> None:
    if items < 1 or not 0.0 < seconds < float("inf"):
        raise ValueError(
            f"a timed batch has 1 item or more and finite seconds above 0; got {items}, {seconds}"
        )
