"""Finds the smallest number from which on a condition holds."""

from __future__ import annotations

from collections.abc import Callable


def smallest(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the smallest number above `low` that holds, as do all above it; at most `high`.

    `high` is taken to hold and is not tried.
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
