"""Bounds how many replicas may be replaced, so that wrong evidence costs little."""

from __future__ import annotations

from dataclasses import dataclass

SHORT_S, LONG_S = 600.0, 3600.0
SHARE, LONG_SHARE = 0.1, 0.3
"""Of the replicas, within each period."""
LEAST, LONG_LEAST = 1, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When replicas were deleted in order to be replaced, oldest first.

    At most the larger of one replica and a tenth in ten minutes, and of three and three tenths in
    an hour. Worked: of 5 replicas 1 and 3, of 40 replicas 4 and 12.
    """

    spent_s: tuple[float, ...] = ()

    def left(self, now_s: float, replicas: int) -> int:
        """Return how many more of so many replicas may be replaced now."""
        soon = max(LEAST, int(SHARE * replicas)) - self._within(now_s, SHORT_S)
        later = max(LONG_LEAST, int(LONG_SHARE * replicas)) - self._within(now_s, LONG_S)
        return max(0, min(soon, later))

    def spend(self, now_s: float) -> Budget:
        """Return the budget after one more deletion."""
        return Budget(spent_s=(*(one for one in self.spent_s if now_s - one < LONG_S), now_s))

    def _within(self, now_s: float, period_s: float) -> int:
        return sum(now_s - one < period_s for one in self.spent_s)
