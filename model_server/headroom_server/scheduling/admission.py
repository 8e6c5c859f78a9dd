"""PURE. Whether a well-formed request may wait, and if not, when to come back.

| server   | queue and prediction                   | answer                                     |
|----------|----------------------------------------|--------------------------------------------|
| draining | any                                    | 503, after a second, from another replica  |
| starting | any                                    | 503, after a second                        |
| ready    | its answer is predicted past its deadline | 429, after what waits has been served   |
| ready    | no room, and nobody less urgent waits  | 429, after what waits has been served      |
| ready    | no room, but somebody less urgent      | accepted; that one leaves with 429         |
| ready    | room                                   | accepted                                   |

The bounds count items, since they are what the device works off, and bytes, since memory ends.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple

from headroom_server.errors import QueueFullError, RefusedError

MAX_RETRY_AFTER_S = 30
LONGEST_WAIT_S = 20.0
"""What jitter is added to, so that a long wait too is spread and stays within half a minute."""


class Refusal(StrEnum):
    """Why a request was not accepted, or left the queue for another one."""

    NOT_READY = "not_ready"
    DRAINING = "draining"
    QUEUE_FULL = "queue_full"
    BYTES_FULL = "bytes_full"
    DEADLINE = "deadline"
    EVICTED = "evicted"


class Caps(NamedTuple):
    """The most that may wait."""

    items: int
    size: int = 1 << 30
    """Bytes."""


def refusal_when_closed(*, ready: bool, draining: bool) -> Refusal | None:
    """Why nobody is accepted now; None while the door is open."""
    if draining:
        return Refusal.DRAINING
    return None if ready else Refusal.NOT_READY


def over_caps(
    items: int, size: int, waiting_items: int, waiting_size: int, caps: Caps
) -> Refusal | None:
    """Why there is no room for so many items and bytes more.

    An empty queue takes any request that fits a batch, however low the bounds are set.
    """
    if not waiting_items:
        return None
    if waiting_items + items > caps.items:
        return Refusal.QUEUE_FULL
    return Refusal.BYTES_FULL if waiting_size + size > caps.size else None


def retry_after_s(backlog_s: float | None, chance: float) -> int:
    """Whole seconds, 1 to 30, until what waits now is served.

    `chance`, from 0 to 1, adds up to half as much and at least up to a second, so that those who
    were refused together do not return together. None: nothing is known yet.
    """
    wait_s = LONGEST_WAIT_S if backlog_s is None else min(LONGEST_WAIT_S, backlog_s)
    spread_s = max(1.0, wait_s / 2)
    return max(1, min(MAX_RETRY_AFTER_S, math.ceil(wait_s + chance * spread_s)))


def closed_error(refusal: Refusal) -> RefusedError:
    """503: no request is accepted now."""
    if refusal is Refusal.DRAINING:
        return RefusedError("this replica is stopping", retry_after_s=1)
    return RefusedError("this replica is not ready", retry_after_s=1)


def shed_error(refusal: Refusal, retry_after_s: int, caps: Caps) -> QueueFullError:
    """429: this request is not accepted."""
    why = {
        Refusal.QUEUE_FULL: f"at most {caps.items} items may wait",
        Refusal.BYTES_FULL: f"at most {caps.size} bytes may wait",
        Refusal.DEADLINE: "the answer is predicted to come after the deadline",
        Refusal.EVICTED: "a more urgent request took its place",
    }[refusal]
    return QueueFullError(f"{why}; try again after {retry_after_s} s", retry_after_s=retry_after_s)
