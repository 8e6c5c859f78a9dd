"""The system's clocks."""

from __future__ import annotations

import time

_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """Wall-clock time and a monotonic clock."""

    def now_s(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def elapsed_s(self) -> float:
        """Monotonic seconds; include suspended time if the system supports it."""
        return time.clock_gettime(_ELAPSED)
