"""Mean and variance of lengths from a histogram, or from two counters."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from headroom.scaling.mathematics.arrays import Vector

BEYOND = 1.5
"""Lengths above the last bound, over it."""


def moments(
    bounds: tuple[float, ...], cumulative: Vector, total: float
) -> tuple[float, float, float]:
    """Return requests, tokens and squared tokens of a histogram with a known sum.

    Scaled so that the tokens are the known sum.
    """
    if not bounds or not len(cumulative) or cumulative[-1] <= 0.0:
        return 0.0, 0.0, 0.0
    lengths, squares = _buckets(bounds)
    if not len(lengths):
        return 0.0, 0.0, 0.0
    counts = cumulative.copy()
    counts[1:] -= cumulative[:-1]
    first, second = float(counts @ lengths), float(counts @ squares)
    if not total > 0.0 or first <= 0.0:
        return float(cumulative[-1]), first, second
    return float(cumulative[-1]), total, second * (total / first) ** 2


@lru_cache(maxsize=64)
def _buckets(bounds: tuple[float, ...]) -> tuple[Vector, Vector]:
    """Return each bucket's mean tokens and mean square; nothing without finite bounds.

    Sheppard's correction (1898), for the logarithm of a length, whose density is smooth: taken at
    the middle of buckets of width d, the moment of order k is sinh(k d / 2) / (k d / 2) times too
    large. Worked: bounds of 2000 and 5000 count 3162 / 1.04 and 3162^2 / 1.15. With every bucket
    evenly filled the squares of 250 to 4000 tokens are 4 to 16 % too large; so within 6 %. The
    first bucket has no lower bound, and is taken as evenly filled.
    """
    finite = np.array([bound for bound in bounds if math.isfinite(bound)])
    if not len(finite):
        return finite, finite
    ends = np.maximum((*finite, BEYOND**2 * finite[-1]), _SHORTEST)[: len(bounds)]
    width = np.clip(np.log(ends[1:] / ends[:-1]), _NARROWEST, _WIDEST)
    middle = np.sqrt(ends[1:]) * np.sqrt(ends[:-1])
    lengths, squares = ends / 2.0, ends * ends / 3.0
    lengths[1:] = middle * (width / 2.0) / np.sinh(width / 2.0)
    squares[1:] = middle * middle * width / np.sinh(width)
    return lengths, squares


_SHORTEST = 0.5
"""Smallest value of a bound, in tokens."""
_NARROWEST, _WIDEST = 1e-6, 100.0
"""Width of a bucket, as the logarithm of its bounds' ratio; wider or narrower ones change
nothing."""
