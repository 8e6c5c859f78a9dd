"""Measures how badly one jump of the rate explains the counts of successive windows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]


def misfit_of_a_step(counts: Counts) -> float:
    """Return the smallest chi-square of two constant rates, one after the other.

    The window between them, in which the rate jumped, fits any step.
    """
    before = np.arange(1, len(counts) - 1)
    sums, squares = np.cumsum(counts), np.cumsum(counts * counts)
    misfit = _misfit(sums[:-2], squares[:-2], before)
    misfit += _misfit(sums[-1] - sums[1:-1], squares[-1] - squares[1:-1], len(counts) - 1 - before)
    return float(misfit.min())


def _misfit(sums: Counts, squares: Counts, windows: NDArray[np.int64]) -> Counts:
    """Return sum (n - mean)^2 / mean = sum n^2 / mean - sum n."""
    means = sums / windows
    misfit: Counts = squares / means - sums
    return misfit
