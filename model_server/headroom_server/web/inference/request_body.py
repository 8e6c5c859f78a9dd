"""The body of a request over ASGI: read within its bounds, and why it cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headroom_server.errors import (
    DisconnectedError,
    EncodingError,
    InvalidRequestError,
    TooLargeError,
)
from headroom_server.web.shared_bound import Reservation

if TYPE_CHECKING:
    from starlette.types import Receive


async def read_body(
    headers: dict[bytes, bytes],
    receive: Receive,
    limit: int,
    reservation: Reservation | None = None,
) -> bytes:
    """Read the whole body.

    Raises:
        QueueFullError: more than the reservation grants; checked by the declared length at first.
        TooLargeError: as soon as it exceeds `limit` bytes.
        DisconnectedError: the client disconnected before it was complete.
    """
    declared = int(headers.get(b"content-length", b"0"))
    if declared > limit:
        raise TooLargeError(f"the body must have at most {limit} bytes; got {declared}")
    if reservation is not None:
        reservation.check(declared)
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        # one array: a list of small chunks takes 40 bytes more for each
        whole = bytearray()
        while True:
            chunk = message.get("body", b"")
            if reservation is not None:
                reservation.grow(len(chunk))
            whole += chunk
            if not message.get("more_body", False) or len(whole) > limit:
                break
            message = await receive()
        body = bytes(whole)
    if message["type"] == "http.disconnect":
        raise DisconnectedError
    if len(body) > limit:
        raise TooLargeError(f"the body must have at most {limit} bytes; got more")
    return body


def explain(error: InvalidRequestError, headers: dict[bytes, bytes]) -> None:
    """Raise a better error if a body cannot be read because it is compressed."""
    encoding = headers.get(b"content-encoding", b"identity")
    if encoding.lower() != b"identity":
        raise EncodingError(
            f"content-encoding must be identity; got {encoding.decode('latin-1')!r:.40}"
        ) from error
