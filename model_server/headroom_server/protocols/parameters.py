"""Parameters of requests that mean the same over HTTP and gRPC. Pure."""

from __future__ import annotations

from headroom_server.errors import InvalidRequestError

LONGEST_TIMEOUT_US = 86_400_000_000


def timeout_s(microseconds: object) -> float | None:
    """Return a request's parameter `timeout` in seconds; None if it has none, or 0."""
    if microseconds is None or microseconds == 0:
        return None
    if type(microseconds) is not int or not 0 < microseconds <= LONGEST_TIMEOUT_US:
        raise InvalidRequestError(
            f"parameters.timeout must be microseconds from 0 (none) to {LONGEST_TIMEOUT_US}; got "
            f"{microseconds!s:.40}"
        )
    return microseconds / 1e6


def refuse_sequences(sequence_id: object) -> None:
    """Refuse a request of a sequence: it would be answered as if none had come before it.

    0 and "" are Triton's values for no sequence.

    Raises:
        InvalidRequestError: it belongs to one.
    """
    if sequence_id:
        raise InvalidRequestError(
            "parameters.sequence_id must be absent or 0: models keep no state between requests; "
            f"got {sequence_id!s:.40}"
        )
