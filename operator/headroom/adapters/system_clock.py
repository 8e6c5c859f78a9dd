"""The machine's clock."""

from __future__ import annotations

import time


class SystemClock:
    """Wall-clock time."""

    def now_s(self) -> float:
        """Seconds since the epoch."""
        return time.time()
