"""Failures in a row of one loop that reads from the API server, or watches it. Pure.

The loop goes on while the API server is away, for hours if need be: it says each failure once, and
waits for as long as a 429 requests.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.errors import ClusterError, Unavailable


@dataclass(slots=True)
class RepeatedFailures:
    """Failures since the last success of the loop."""

    _complaint: str = ""

    def ends(self) -> None:
        """Take in a success: the same failure is news again."""
        self._complaint = ""

    def is_news(self, error: object) -> bool:
        """Take in a failure; return whether it is another one than the last."""
        before, self._complaint = self._complaint, str(error)
        return self._complaint != before


def pause_after_s(error: ClusterError, shortest_s: float) -> float:
    """Return how long to wait after a failure, at least as long as the API server requests."""
    return max(shortest_s, error.retry_after_s if isinstance(error, Unavailable) else 0.0)
