"""Decides whether a valid request may wait, and if not, when to retry. Pure.

| server   | queue and prediction                      | response                                |
|----------|-------------------------------------------|-----------------------------------------|
| draining | any                                       | 503, retry after 1 s (another replica)  |
| starting | any                                       | 503, retry after 1 s                    |
| ready    | predicted to finish after its deadline    | 429, retry once the queue is served     |
| ready    | queue full, no less urgent request waits  | 429, retry once the queue is served     |
| ready    | queue full, a less urgent request waits   | accepted; the other one gets the 429    |
| ready    | room in the queue                         | accepted                                |

The queue is limited in items, which the device processes, and in bytes, which memory holds.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple

from headroom_server.errors import QueueFullError, RefusedError

MAX_RETRY_AFTER_S = 30
LONGEST_WAIT_S = 20.0
"""Jitter is added to this, so that long waits are also spread and stay within 30 s."""


class Refusal(StrEnum):
    """Reason why a request was not accepted, or was evicted from the queue."""

    NOT_READY = "not_ready"
    DRAINING = "draining"
    QUEUE_FULL = "queue_full"
    BYTES_FULL = "bytes_full"
    DEADLINE = "deadline"
    EVICTED = "evicted"


class Caps(NamedTuple):
    """The limits of the queue."""

    items: int
    size: int = 1 << 30
    """Bytes."""


def refusal_when_closed(*, ready: bool, draining: bool) -> Refusal | None:
    """Return why no request is accepted now; None while the intake is open."""
    if draining:
        return Refusal.DRAINING
    return None if ready else Refusal.NOT_READY


def over_caps(
    items: int, size: int, waiting_items: int, waiting_size: int, caps: Caps
) -> Refusal | None:
    """Return why this many more items and bytes do not fit.

    An empty queue accepts any request that fits a batch, however low the limits are.
    """
    if not waiting_items:
        return None
    if waiting_items + items > caps.items:
        return Refusal.QUEUE_FULL
    return Refusal.BYTES_FULL if waiting_size + size > caps.size else None


def retry_after_s(backlog_s: float | None, chance: float) -> int:
    """Return whole seconds, 1 to 30, until the current queue is served.

    `chance`, from 0 to 1, adds up to half of it and at least up to a second, so that requests that
    were refused together do not return together. None: nothing is known yet.
    """
    wait_s = LONGEST_WAIT_S if backlog_s is None else min(LONGEST_WAIT_S, backlog_s)
    spread_s = max(1.0, wait_s / 2)
    return max(1, min(MAX_RETRY_AFTER_S, math.ceil(wait_s + chance * spread_s)))


def closed_error(refusal: Refusal) -> RefusedError:
    """Return the 503 response: no request is accepted now."""
    if refusal is Refusal.DRAINING:
        return RefusedError("this replica is stopping", retry_after_s=1)
    return RefusedError("this replica is not ready", retry_after_s=1)


def shed_error(refusal: Refusal, retry_after_s: int, caps: Caps) -> QueueFullError:
    """Return the 429 response: this request is not accepted."""
    why = {
        Refusal.QUEUE_FULL: f"at most {caps.items} items may wait",
        Refusal.BYTES_FULL: f"at most {caps.size} bytes may wait",
        Refusal.DEADLINE: "the answer is predicted to come after the deadline",
        Refusal.EVICTED: "a more urgent request took its place",
    }[refusal]
    return QueueFullError(f"{why}; try again after {retry_after_s} s", retry_after_s=retry_after_s)
