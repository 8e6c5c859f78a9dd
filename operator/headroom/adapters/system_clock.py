"""The machine's clocks."""

from __future__ import annotations

import time

_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The time of day, and one that nobody sets."""

    def now_s(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def elapsed_s(self) -> float:
        """Seconds since some moment; goes on while the machine sleeps, where it can tell."""
        return time.clock_gettime(_ELAPSED)
