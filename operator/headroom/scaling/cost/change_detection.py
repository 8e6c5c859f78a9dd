"""Detects whether recent executions contradict the expected cost by more than chance."""

from __future__ import annotations

import math

RATIO, DEVIATIONS = 1.15, 5.0
"""A new cost: this far from the expected one, and this many standard deviations of the mean."""
FEWEST_BATCHES = 10.0
"""Fewer batches never count as a change."""
KEPT = 0.02
"""Share of the learned sums that is kept after a change."""

Recent = tuple[float, float, float]
"""Batches, their seconds, and the expected seconds."""


def detect_change(recent: Recent, cv: float) -> float | None:
    """Return how many times as long as expected they took; None if chance explains the difference.

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
