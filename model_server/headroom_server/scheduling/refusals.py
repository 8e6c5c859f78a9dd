"""PURE. What a client is told that was not accepted."""

from __future__ import annotations

from headroom_server.errors import QueueFullError, RefusedError
from headroom_server.scheduling.admission import Caps, Refusal


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
