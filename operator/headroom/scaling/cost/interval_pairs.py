"""Sums over pairs of successive intervals of a replica, without what the sizes of batches explain.

Successive batches differ in size, too. While only similar sizes were seen, what a request adds is
hardly known, and fast models execute hundreds of batches in an interval. Worked: 200 of 4.9 and 200
of 5.2 requests that take 10 ms alike: if a request is assumed to add 1.5 ms, they differ by 4 %,
which 200 executions would show for a variation of 0.4. So the slope between the pairs themselves is
taken out: the sums are those of a regression of seconds over requests without a constant.
"""

from __future__ import annotations

from typing import NamedTuple

MOST_CV = 100.0
"""Largest cv of one difference: pages may claim more, which would outweigh all others for hours."""
_MOST_SQUARE = MOST_CV**2


class Pairs(NamedTuple):
    """Sums over pairs of intervals, each weighted by the variance that a cv of 1 would cause."""

    squares: float = 0.0
    """Squared differences in seconds."""
    differences: float = 0.0
    """How many pairs."""
    products: float = 0.0
    """Differences in seconds times those in requests of a batch."""
    sizes: float = 0.0
    """Squared differences in requests."""

    def plus(self, seconds: float, requests: float, variance: float, fade: float) -> Pairs:
        """Return the sums, faded, with a pair added, whose cv counts as at most `MOST_CV`."""
        weight = 1.0 / max(variance, seconds * seconds / _MOST_SQUARE)
        return Pairs(
            fade * self.squares + weight * seconds * seconds,
            fade * self.differences + 1.0,
            fade * self.products + weight * seconds * requests,
            fade * self.sizes + weight * requests * requests,
        )

    @property
    def slope(self) -> float:
        """Seconds that a request adds, by these pairs; 0 if all had the same sizes."""
        return max(0.0, self.products / self.sizes) if self.sizes > 0.0 else 0.0

    def residual(self, slope: float) -> float:
        """Return the squares that remain where each request adds `slope` seconds."""
        return max(0.0, self.squares - slope * (2.0 * self.products - slope * self.sizes))
