"""PURE. How much of a deadline may be promised away, steered by how many promises were broken.

Additive increase, multiplicative decrease: 100 ends with at most `TARGET` of them missed give
one percent of the deadline back; more misses take a twentieth of it, once per generation: who
was accepted before the last decrease says nothing about it.
"""

from __future__ import annotations

from typing import NamedTuple

TARGET = 0.01
WINDOW = 100
"""Ends that are judged together; three misses are judged at once."""
GIVEN_BACK = 0.01
KEPT = 0.95
LEAST_SHARE, MOST_SHARE = 0.5, 0.95
"""What is never promised away is for the way to the client, which is not seen here."""


class DeadlineMargin(NamedTuple):
    """The usable share of deadlines at one priority; `ended` returns the next one."""

    share: float = MOST_SHARE
    since_s: float = float("-inf")
    """Requests that arrived earlier were accepted at another share."""
    ended_count: int = 0
    missed_count: int = 0

    def latest_s(self, arrived_s: float, deadline_s: float) -> float:
        """By when the answer must be predicted."""
        return arrived_s + self.share * (deadline_s - arrived_s)

    def record(self, *, missed: bool, arrived_s: float, now_s: float) -> DeadlineMargin:
        """An accepted request with a deadline has been answered, in time or not."""
        if arrived_s < self.since_s:
            return self
        ends, misses = self.ended_count + 1, self.missed_count + missed
        if misses > 2 * TARGET * WINDOW or (ends >= WINDOW and misses > TARGET * ends):
            return DeadlineMargin(max(LEAST_SHARE, KEPT * self.share), now_s)
        if ends >= WINDOW:
            return DeadlineMargin(min(MOST_SHARE, self.share + GIVEN_BACK), self.since_s)
        return DeadlineMargin(self.share, self.since_s, ends, misses)
