"""How unlikely counts of requests are: Chernoff's bound for Poisson numbers, in e-folds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]
CERTAIN = 14.0
"""Chance explains a count once in so many e-folds: e^14 are a million."""
IDLE_SHARE = 0.2
"""Part of an even share: a replica with fewer requests is idle."""


def e_folds(counts: Counts, expected: float) -> Counts:
    """Return the exponent e of P(as far from `expected`) <= exp(-e), for each count.

    Worked: none of 5 expected are 5 e-folds, none of 17 are 17; 82 of 40 are 16.9.
    """
    found: Counts = counts * np.log(np.maximum(counts, 1e-9) / expected) - counts + expected
    return found
