"""The model that every server under test serves: it sleeps as long as a device would compute.

t(b) = fixed + (per_item + per_token * length) * b seconds. A sleep ends late by some 0.1 ms, which
is taken off the next one, so that the mean is exact. `SERVERBENCH_COLD=3:1.2` adds 1.2 s to each of
the first three batches, as a device that compiles kernels does. Needs only Python: peers import it
in environments of their own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

FIXED_COST = "SERVERBENCH_FIXED_COST_S"
PER_ITEM_COST = "SERVERBENCH_PER_ITEM_COST_S"
PER_TOKEN_COST = "SERVERBENCH_PER_TOKEN_COST_S"
SLOWDOWN = "SERVERBENCH_SLOWDOWN"
COLD = "SERVERBENCH_COLD"
MAX_BATCH_SIZE = int(os.environ.get("SERVERBENCH_MAX_BATCH_SIZE", "8"))
OVERSLEPT_CAP_S = 0.001


class Device:
    """Spends time; with `SERVERBENCH_SLOWDOWN=30:2` twice as much from 30 s after its making."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._fixed_s = float(environment.get(FIXED_COST, "0.006"))
        self._per_item_s = float(environment.get(PER_ITEM_COST, "0.0005"))
        self._per_token_s = float(environment.get(PER_TOKEN_COST, "0"))
        after, _, factor = environment.get(SLOWDOWN, "inf:1").partition(":")
        self._slow_from_s = time.monotonic() + float(after)
        self._slow_factor = float(factor)
        batches, _, seconds = environment.get(COLD, "0:0").partition(":")
        self._cold_batches, self._cold_s = int(batches), float(seconds)
        self._overslept_s = 0.0

    def spend(self, items: int, length: int = 0) -> None:
        """Take the time of one batch, `length` being that of its padded items."""
        now_s = time.monotonic()
        cost_s = self._fixed_s + items * (self._per_item_s + self._per_token_s * length)
        if self._cold_batches > 0:
            self._cold_batches -= 1
            cost_s += self._cold_s
        if now_s >= self._slow_from_s:
            cost_s *= self._slow_factor
        due_s = now_s + cost_s - self._overslept_s
        time.sleep(max(0.0, due_s - time.monotonic()))
        self._overslept_s = min(max(0.0, time.monotonic() - due_s), OVERSLEPT_CAP_S)
