"""Predicts the length of answers from those that ended. Pure.

A histogram with bounds growing by a half, in which each answer counts `FORGET` times the next.
`expected(generated)` is the mean length of the answers longer than that: an answer that is already
long becomes longer than one that has just begun. Until answers were seen, a weak prior holds: one
answer of each length from 16 to 512 tokens.
"""

from __future__ import annotations

from bisect import bisect_left

FORGET = 0.998
BOUNDS = tuple(round(4 * 1.5**k) for k in range(31))
"""Upper bounds of the buckets: 4 to 767 000 tokens."""
PRIOR = range(bisect_left(BOUNDS, 16), bisect_left(BOUNDS, 512) + 1)
PRIOR_WEIGHT = 1.0
REFRESH = 16


class OutputLengths:
    """The distribution of the lengths of answers."""

    __slots__ = ("_beyond", "_counts", "_new", "_sums")

    def __init__(self) -> None:
        size = len(BOUNDS) + 1
        self._counts = [0.0] * size
        self._sums = [0.0] * size
        for at in PRIOR:
            self._counts[at] = PRIOR_WEIGHT
            self._sums[at] = PRIOR_WEIGHT * 0.8 * BOUNDS[at]
        self._new = 0
        self._beyond: list[float] = []
        self._refresh()

    def record(self, tokens: int) -> None:
        """Add the length of an answer that ended on its own."""
        at = bisect_left(BOUNDS, tokens)
        # what is new weighs more, instead of multiplying all buckets each time
        self._counts = [FORGET * count for count in self._counts]
        self._sums = [FORGET * total for total in self._sums]
        self._counts[at] += 1.0
        self._sums[at] += tokens
        self._new += 1
        if self._new >= REFRESH:
            self._new = 0
            self._refresh()

    def expected(self, generated: int = 0) -> float:
        """Return the mean length of answers that are longer than this."""
        return max(generated + 1.0, self._beyond[bisect_left(BOUNDS, generated + 1)])

    def _refresh(self) -> None:
        count = total = 0.0
        beyond: list[float] = []
        for at in range(len(self._counts) - 1, -1, -1):
            count += self._counts[at]
            total += self._sums[at]
            beyond.append(total / count if count > 1e-9 else 0.0)
        self._beyond = beyond[::-1]
