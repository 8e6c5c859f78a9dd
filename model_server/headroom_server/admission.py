"""PURE. Whether a well-formed request may wait, and if not, when to come back.

| server   | queue            | answer                                                      |
|----------|------------------|-------------------------------------------------------------|
| starting | any              | 503, after a second                                         |
| draining | any              | 503, after a second, from another replica                   |
| ready    | no room          | 429, after the seconds in which what waits will be served    |
| ready    | room             | accepted                                                    |

The bound counts items, since they are what the device works off.
"""

from __future__ import annotations

import math
from enum import StrEnum

MAX_RETRY_AFTER_S = 30


class Refusal(StrEnum):
    """Why a request was not accepted."""

    NOT_READY = "not_ready"
    DRAINING = "draining"
    QUEUE_FULL = "queue_full"


def admit(
    items: int, *, ready: bool, draining: bool, waiting_items: int, max_waiting_items: int
) -> Refusal | None:
    """None accepts a request of so many items.

    An empty queue takes any request that fits a batch, however low the bound is set.
    """
    if draining:
        return Refusal.DRAINING
    if not ready:
        return Refusal.NOT_READY
    if waiting_items and waiting_items + items > max_waiting_items:
        return Refusal.QUEUE_FULL
    return None


def retry_after_s(waiting_items: int, drain_rate: float | None) -> int:
    """Whole seconds until what waits now is served, from 1 to 30.

    `drain_rate` is in items per second; None before anything was timed.
    """
    if not drain_rate or drain_rate <= 0.0:
        return MAX_RETRY_AFTER_S
    return max(1, min(MAX_RETRY_AFTER_S, math.ceil(waiting_items / drain_rate)))
