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
from dataclasses import dataclass
from enum import StrEnum

MAX_RETRY_AFTER_S = 30


class Refusal(StrEnum):
    """Why a request was not accepted."""

    NOT_READY = "not_ready"
    DRAINING = "draining"
    QUEUE_FULL = "queue_full"


@dataclass(frozen=True, slots=True)
class Refused:
    """Not accepted: why, and the whole seconds after which another try makes sense."""

    reason: Refusal
    retry_after_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What admission looks at."""

    ready: bool
    draining: bool
    waiting_items: int
    max_waiting_items: int
    drain_rate: float | None
    """Items per second in full batches; None before anything was timed."""


def admit(items: int, door: Door) -> Refused | None:
    """None accepts a request of so many items.

    An empty queue takes any request that fits a batch, however low the bound is set.
    """
    if door.draining:
        return Refused(Refusal.DRAINING, 1)
    if not door.ready:
        return Refused(Refusal.NOT_READY, 1)
    if door.waiting_items and door.waiting_items + items > door.max_waiting_items:
        return Refused(Refusal.QUEUE_FULL, retry_after_s(door.waiting_items, door.drain_rate))
    return None


def retry_after_s(waiting_items: int, drain_rate: float | None) -> int:
    """Whole seconds until what waits now is served, from 1 to 30."""
    if not drain_rate or drain_rate <= 0.0:
        return MAX_RETRY_AFTER_S
    return max(1, min(MAX_RETRY_AFTER_S, math.ceil(waiting_items / drain_rate)))
