"""PURE. Where most samples lie, followed online by mean and mean deviation, as in RFC 6298."""

from __future__ import annotations

from typing import NamedTuple

WEIGHT = 0.05
"""Of the latest sample: a change is followed within some 40 samples, up as fast as down."""


class Spread(NamedTuple):
    """The estimate as a value; `follow` returns the next one."""

    mean: float = 0.0
    deviation: float = 0.0

    @property
    def high(self) -> float:
        """About the 95th percentile: where they are normal, mean + 1.6 sigma. Never negative."""
        return max(0.0, self.mean + 2.0 * self.deviation)

    def follow(self, sample: float) -> Spread:
        """One more sample."""
        off = sample - self.mean
        return Spread(
            self.mean + WEIGHT * off, self.deviation + WEIGHT * (abs(off) - self.deviation)
        )
