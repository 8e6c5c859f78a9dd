"""PURE. Under which outcome a request is counted that ended with an error."""

from __future__ import annotations

from headroom_server.errors import (
    DisconnectedError,
    ExpiredError,
    QueueFullError,
    RefusedError,
    RequestError,
)
from headroom_server.telemetry.accounting import Outcome

_OUTCOMES: dict[type[RequestError], Outcome] = {
    RefusedError: Outcome.REFUSED,
    QueueFullError: Outcome.REFUSED,
    ExpiredError: Outcome.EXPIRED,
    DisconnectedError: Outcome.CANCELLED,
}


def outcome_of(error: RequestError) -> Outcome:
    """What is none of these is a failure."""
    return _OUTCOMES.get(type(error), Outcome.FAILED)
