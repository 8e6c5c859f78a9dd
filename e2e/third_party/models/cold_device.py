"""A device that is slow for its first batches, as one is that compiles kernels and fills caches."""

from __future__ import annotations

import os
import time

FIXED_S = float(os.environ.get("DEVICE_FIXED_S", "0.15"))
PER_ITEM_S = float(os.environ.get("DEVICE_PER_ITEM_S", "0.06"))
COLD_BATCHES = int(os.environ.get("DEVICE_COLD_BATCHES", "3"))
COLD_S = float(os.environ.get("DEVICE_COLD_S", "1.2"))
MAX_BATCH_SIZE = 4


class ColdDevice:
    """Spends the time of a batch."""

    def __init__(self) -> None:
        self._batches = 0

    def spend(self, items: int) -> None:
        """Execute a batch of so many items."""
        self._batches += 1
        cold_s = COLD_S if self._batches <= COLD_BATCHES else 0.0
        time.sleep(FIXED_S + PER_ITEM_S * items + cold_s)
