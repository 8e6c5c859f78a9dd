"""Bounds how many replicas may be replaced, so that wrong evidence costs little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

SHORT_S, LONG_S = 600.0, 3600.0


class Limits(NamedTuple):
    """Replicas within ten minutes and within an hour: a number, or a share if that is more."""

    least: int
    share: float
    long_least: int
    long_share: float


REPLACING = Limits(least=1, share=0.1, long_least=3, long_share=0.3)
"""Worked: of 5 replicas 1 and 3, of 40 replicas 4 and 12."""
REBALANCING = Limits(least=4, share=0.5, long_least=12, long_share=1.5)
"""Worked: of 5 replicas 4 and 12, of 40 replicas 20 and 60."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Times at which replicas were deleted in order to be replaced, oldest first."""

    limits: Limits = REPLACING
    spent_s: tuple[float, ...] = ()

    def left(self, now_s: float, replicas: int) -> int:
        """Return how many more of this many replicas may be replaced now."""
        limits = self.limits
        soon = max(limits.least, int(limits.share * replicas)) - self._within(now_s, SHORT_S)
        later = max(limits.long_least, int(limits.long_share * replicas))
        return max(0, min(soon, later - self._within(now_s, LONG_S)))

    def spend(self, now_s: float) -> Budget:
        """Return the budget after one more deletion."""
        kept = (one for one in self.spent_s if now_s - one < LONG_S)
        return Budget(limits=self.limits, spent_s=(*kept, now_s))

    def _within(self, now_s: float, period_s: float) -> int:
        return sum(now_s - one < period_s for one in self.spent_s)
