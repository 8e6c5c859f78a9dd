"""Sums over pairs of successive intervals of a replica, corrected for the sizes of batches.

Successive batches differ in size, too. While only similar sizes were seen, what a request adds is
hardly known, and fast models execute hundreds of batches in an interval. Worked: 200 of 4.9 and 200
of 5.2 requests that take 10 ms alike: if a request is assumed to add 1.5 ms, they differ by 4 %,
which 200 executions would show for a variation of 0.4. So the slope between the pairs themselves is
taken out: the sums are those of a regression of seconds over requests without a constant.
"""

from __future__ import annotations

MOST_CV = 100.0
"""Largest cv of one difference: pages may claim more, which would outweigh all others for hours."""
_MOST_SQUARE = MOST_CV**2

Pairs = tuple[float, float, float, float]
"""Sums over pairs of intervals, each weighted by the variance that a cv of 1 would cause: squared
differences in seconds; how many pairs; differences in seconds times those in requests of a batch;
squared differences in requests."""
NO_PAIRS: Pairs = (0.0, 0.0, 0.0, 0.0)


def pair(seconds: float, requests: float, variance: float) -> Pairs:
    """Return the sums of one pair with these differences, whose cv is at most `MOST_CV`."""
    weight = 1.0 / max(variance, seconds * seconds / _MOST_SQUARE)
    weighted = weight * seconds
    return weighted * seconds, 1.0, weighted * requests, weight * requests * requests


def plus(pairs: Pairs, others: Pairs, fade: float = 1.0) -> Pairs:
    """Return the sums, faded, with others added."""
    squares, differences, products, sizes = pairs
    more, count, further, larger = others
    return (
        fade * squares + more,
        fade * differences + count,
        fade * products + further,
        fade * sizes + larger,
    )


def slope(pairs: Pairs) -> float:
    """Return the seconds that a request adds, by these pairs; 0 if all had the same sizes."""
    _, _, products, sizes = pairs
    return max(0.0, products / sizes) if sizes > 0.0 else 0.0


def residual(pairs: Pairs, each_s: float) -> float:
    """Return the squares that remain where each request adds `each_s` seconds."""
    squares, _, products, sizes = pairs
    return max(0.0, squares - each_s * (2.0 * products - each_s * sizes))
