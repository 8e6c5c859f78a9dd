"""Probability of counts of requests: Chernoff's bound for Poisson numbers, in e-folds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]
CERTAIN = 14.0
"""Threshold of certainty, in e-folds: chance explains a count once in e^14, about a million."""
DOUBTED = 4.0
"""Threshold of a suspicion: chance explains a count once in 200 windows, too often for a proof."""
IDLE_SHARE = 0.2
"""Share of an even load below which a replica counts as idle."""


def e_folds(counts: Counts, expected: float) -> Counts:
    """Return the exponent e of P(as far from `expected`) <= exp(-e), for each count.

    Worked: none of 5 expected are 5 e-folds, none of 17 are 17; 82 of 40 are 16.9.
    """
    found: Counts = counts * np.log(np.maximum(counts, 1e-9) / expected) - counts + expected
    return found


def e_folds_apart(counts: Counts, others: Counts) -> Counts:
    """Return the exponent e of the likelihood ratio exp(-e) of one mean for both counts.

    Worked: 0 and 40 are 28 e-folds apart, 16 and 40 are 5.
    """
    mean = np.maximum((counts + others) / 2.0, 1e-9)
    return _times_log(counts, mean) + _times_log(others, mean)


def _times_log(counts: Counts, mean: Counts) -> Counts:
    value: Counts = counts * np.log(np.maximum(counts, 1e-9) / mean)
    return value
