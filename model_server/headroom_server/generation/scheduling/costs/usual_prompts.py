"""Tells long prompts: several times the usual one, and many iterations' worth of time. Pure.

The usual length is the squared mean of square roots: many short prompts weigh more than few long
ones, and a prompt of one token does not count for nothing, as it would in a geometric mean.
"""

from __future__ import annotations

import math

WEIGHT = 0.02
"""Weight of a new prompt: the last 50 hold 63 % of the weight."""
TIMES_USUAL = 6.0
TIMES_ITERATION = 8.0
"""A prompt that takes less than this many iterations without prompts is never long."""


class UsualPrompts:
    """The usual length of prompts, learned from those that arrive."""

    __slots__ = ("_root", "_seen")

    def __init__(self) -> None:
        self._root = 0.0
        self._seen = 0

    def record(self, tokens: int) -> None:
        """Add a prompt."""
        self._seen += 1
        weight = max(WEIGHT, 1.0 / self._seen)
        self._root += weight * (math.sqrt(tokens) - self._root)

    def long(self, tokens: int, own_s: float, iteration_s: float) -> bool:
        """Return whether a prompt that takes `own_s` is long."""
        return (
            tokens > TIMES_USUAL * self._root * self._root
            and own_s > TIMES_ITERATION * iteration_s > 0.0
        )
