"""The warm-up of one pod: its answers, the next request, and when to give up. Pure.

A pod is warm when all of its last N requests were answered, and 95 % of them (nearest rank, so all
if fewer than 20) within the warm latency. Earlier answers may be slow: that is what a warm-up is
for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 10.0
"""Pause after the first failure in a row, and after many."""
ROUND_PAUSE_S = 1.0
"""After as many slow answers as would have made it warm: a pod that stays slow is not flooded."""
LATE_PAUSE_S = 30.0
"""Between single requests after the timeout: a recovery is noticed."""
SHARE = 0.95


class Fault(StrEnum):
    """The outcome of a request, as the reason of a pod's condition."""

    UNANSWERED = "RequestUnanswered"
    FAILED = "RequestFailed"
    REFUSED = "RequestRefused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Terms on which a pod counts as warm."""

    requests: int
    max_latency_s: float
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The answers of one pod so far."""

    begun_s: float
    answered_s: tuple[float, ...] = ()
    """Seconds that the last answers took, at most as many as have to be quick."""
    sent: int = 0
    failures: int = 0
    """Consecutive failures."""
    slow: int = 0
    """Answers in a row that were no part of a warm round."""
    fault: Fault | None = None
    said: str = ""
    """Result of the last request, where it was no answer."""
    last_s: float | None = None
    """Time of the last request."""

    def answered(self, seconds: float, now_s: float, terms: Terms) -> Progress:
        """Process an answer."""
        return replace(
            self,
            answered_s=(*self.answered_s, seconds)[-terms.requests :],
            sent=self.sent + 1,
            failures=0,
            slow=0 if seconds <= terms.max_latency_s else self.slow + 1,
            fault=None,
            said="",
            last_s=now_s,
        )

    def failed(self, fault: Fault, said: str, now_s: float) -> Progress:
        """Note a request without the expected answer; the round restarts."""
        return replace(
            self,
            answered_s=(),
            sent=self.sent + 1,
            failures=self.failures + 1,
            slow=0,
            fault=fault,
            said=said,
            last_s=now_s,
        )

    def is_warm(self, terms: Terms) -> bool:
        """Return whether the last round was quick enough."""
        if len(self.answered_s) < terms.requests:
            return False
        return _percentile_s(self.answered_s) <= terms.max_latency_s

    def is_late(self, terms: Terms, now_s: float) -> bool:
        """Return whether its time is up."""
        return now_s - self.begun_s > terms.timeout_s

    def next_s(self, terms: Terms, now_s: float) -> float:
        """Return the time of the next request; not after `now_s`: at once."""
        if self.last_s is None:
            return now_s
        if self.is_late(terms, now_s) and self._is_slow_or_failing():
            return self.last_s + LATE_PAUSE_S
        if self.failures:
            doubled = SHORTEST_PAUSE_S * 2.0 ** min(self.failures - 1, 10)
            return self.last_s + min(doubled, LONGEST_PAUSE_S)
        if self.slow and self.slow % terms.requests == 0:
            return self.last_s + ROUND_PAUSE_S
        return self.last_s

    def slowest_s(self) -> float:
        """The slowest answer of those that count; 0 before the first."""
        return max(self.answered_s, default=0.0)

    def _is_slow_or_failing(self) -> bool:
        """Return whether the last request was no step towards being warm."""
        return self.failures > 0 or self.slow > 0


def _percentile_s(seconds: tuple[float, ...]) -> float:
    """Nearest rank: of 16 the 16th, of 20 the 19th."""
    return sorted(seconds)[math.ceil(SHARE * len(seconds)) - 1]
