"""Selects the failures of ticks to log: one that many services share is logged once. Pure.

While the API server is slow, throttles or is down, the ticks of all services fail, and between them
some succeed. Metrics count each; the log names the first ones of a minute and how many it left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.errors import Unavailable

MOST_LINES = 10
WITHIN_S = 60.0


@dataclass(slots=True)
class FailureLog:
    """Counts the lines of the present minute."""

    since_s: float = 0.0
    lines: int = 0
    left_out: int = 0

    def line(self, error: Exception, complaint: str, now_s: float) -> str | None:
        """Return the log line of a failure; None: it is only counted.

        What concerns a single service is always logged.
        """
        if not isinstance(error, Unavailable | TimeoutError):
            return complaint
        if not self.lines or now_s - self.since_s >= WITHIN_S:
            before, self.since_s, self.lines, self.left_out = self.left_out, now_s, 1, 0
            more = f" ({before} more failed before and were not logged)" if before else ""
            return complaint + more
        if self.lines >= MOST_LINES:
            self.left_out += 1
            return None
        self.lines += 1
        return complaint
