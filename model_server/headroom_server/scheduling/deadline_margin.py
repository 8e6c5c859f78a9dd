"""The usable share of a deadline, controlled by how many deadlines were missed. Pure.

Additive increase, multiplicative decrease: if at most `TARGET` of 100 deadlines were missed, the
share grows by 1 % of the deadline; otherwise it shrinks by a twentieth, once per generation,
because requests accepted before the last decrease say nothing about it.
"""

from __future__ import annotations

from typing import NamedTuple

TARGET = 0.01
WINDOW = 100
"""Results that are evaluated together; three misses are evaluated at once."""
GIVEN_BACK = 0.01
KEPT = 0.95
LEAST_SHARE, MOST_SHARE = 0.5, 0.95
"""The rest is for the way to the client, which is not measured here."""


class DeadlineMargin(NamedTuple):
    """The usable share of deadlines at one priority; `record` returns the next one."""

    share: float = MOST_SHARE
    since_s: float = float("-inf")
    """Requests that arrived earlier were accepted at another share."""
    ended_count: int = 0
    missed_count: int = 0

    def latest_s(self, arrived_s: float, deadline_s: float) -> float:
        """Return the latest permitted predicted finish."""
        return arrived_s + self.share * (deadline_s - arrived_s)

    def record(self, *, missed: bool, arrived_s: float, now_s: float) -> DeadlineMargin:
        """Record whether an accepted request missed its deadline."""
        if arrived_s < self.since_s:
            return self
        ends, misses = self.ended_count + 1, self.missed_count + missed
        if misses > 2 * TARGET * WINDOW or (ends >= WINDOW and misses > TARGET * ends):
            return DeadlineMargin(max(LEAST_SHARE, KEPT * self.share), now_s)
        if ends >= WINDOW:
            return DeadlineMargin(min(MOST_SHARE, self.share + GIVEN_BACK), self.since_s)
        return DeadlineMargin(self.share, self.since_s, ends, misses)
