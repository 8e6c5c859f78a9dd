"""Whether recent executions contradict what was expected of them, beyond chance."""

from __future__ import annotations

import math

RATIO, DEVIATIONS = 1.15, 5.0
"""This far from what was expected, and as many deviations of their mean: a new cost."""
FEWEST_BATCHES = 10.0
"""Fewer surprise nobody."""
KEPT = 0.02
"""Of what was known, after a surprise."""

Recent = tuple[float, float, float]
"""Batches, their seconds, and the seconds that had been expected."""


def detect_change(recent: Recent, cv: float) -> float | None:
    """Return how many times as long as expected they took; None where chance explains it.

    Worked: cv 1 and 100 batches: a mean is within 1 +- 5 / 10, so only a factor above 1.5 counts.
    """
    count, took_s, expected_s = recent
    if count < FEWEST_BATCHES or expected_s <= 0:
        return None
    ratio = took_s / expected_s
    chance = DEVIATIONS * cv / math.sqrt(count)
    if 1 / RATIO <= ratio <= RATIO or abs(ratio - 1) <= chance:
        return None
    return ratio
