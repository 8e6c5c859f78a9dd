"""Pause of a service after a failed tick. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.errors import Conflict, NotFound, Unavailable

JITTER = 0.05
"""Share of a pause after a failure by which it is spread."""
AT_ONCE_S = 0.02
AT_ONCE_TIMES = 3
"""Conflicts in a row after which a service waits for its next period like any other."""
BACK_OFF_BEYOND_S = 2.0
"""However long it has failed, a service waits for two periods and this at most, from the beginning
of one tick to that of the next: once a fault has ended, decisions are to be back within two periods
and 5 s, of which a request may take 3 s. Fewer calls than those of ticks that succeed are nothing
to spare the API server from; what it asks for by Retry-After is kept besides."""


@dataclass(slots=True)
class FailureStreak:
    """The failures of one service since its last tick that succeeded."""

    conflicts: int = 0
    """In a row, after each of which it was tried again at once."""
    failures: int = 0
    complaint: str = ""
    """The last failure's message, so that it is logged once."""

    def ends(self) -> None:
        """Count a tick that succeeded."""
        self.conflicts = self.failures = 0
        self.complaint = ""

    def is_tried_at_once(self, error: Exception) -> bool:
        """Count a failure; whether it was a conflict that another look may resolve."""
        if isinstance(error, Conflict | NotFound) and self.conflicts < AT_ONCE_TIMES:
            self.conflicts += 1
            return True
        self.conflicts = 0
        self.failures += 1
        return False

    def pause_s(self, error: Exception, period_s: float, passed_s: float, chance: float) -> float:
        """Return the pause now, `passed_s` after the failed tick began; `chance` (0 to 1) spreads.

        Worked: the first failure of a service with a period of 2 s, after 0.5 s: 1.4 to 1.5 s.
        """
        longest_s = 2.0 * period_s + BACK_OFF_BEYOND_S
        back_off_s = min(period_s * 2.0 ** min(self.failures - 1, 10), longest_s)
        asked_s = error.retry_after_s if isinstance(error, Unavailable) else 0.0
        spread = 1.0 - JITTER * chance
        return max(back_off_s * spread - passed_s, asked_s * (2.0 - spread), AT_ONCE_S)
