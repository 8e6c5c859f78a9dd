"""PURE. What a client is told that was not accepted."""

from __future__ import annotations

from headroom_server.admission import Caps, Refusal
from headroom_server.errors import QueueFullError, RefusedError


def refused(refusal: Refusal, retry_after_s: int, caps: Caps) -> RefusedError:
    """503 where no request is accepted now, 429 where this one is not."""
    if refusal is Refusal.DRAINING:
        return RefusedError("this replica is stopping", retry_after_s=retry_after_s)
    if refusal is Refusal.NOT_READY:
        return RefusedError("this replica is not ready", retry_after_s=retry_after_s)
    why = {
        Refusal.QUEUE_FULL: f"at most {caps.items} items may wait",
        Refusal.BYTES_FULL: f"at most {caps.size} bytes may wait",
        Refusal.DEADLINE: "the answer is predicted to come after the deadline",
        Refusal.EVICTED: "a more urgent request took its place",
    }[refusal]
    return QueueFullError(f"{why}; try again after {retry_after_s} s", retry_after_s=retry_after_s)
