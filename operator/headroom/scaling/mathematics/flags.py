"""Tests the flags of a few replicas: `any_set` and `all_set`.

In a quarter of the time of `any()` and `all()` of an array, which are functions in Python: 0.3 us
instead of 1.1 us. A tick asks some thirty times.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


def any_set(flags: Flags) -> bool:
    """Return whether at least one is set."""
    return bool(np.count_nonzero(flags))


def all_set(flags: Flags) -> bool:
    """Return whether none is unset."""
    return bool(np.count_nonzero(flags) == flags.size)
