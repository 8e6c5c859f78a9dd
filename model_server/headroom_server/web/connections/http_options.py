"""Options and shared bounds of all HTTP connections of a server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from headroom_server.web.connections.read_turns import ReadTurns
from headroom_server.web.inference.direct import FastPath
from headroom_server.web.inference.known_heads import KnownHeads
from headroom_server.web.shared_bound import SharedBound, receiving_bytes


def plain_refusal(status: int, message: str) -> bytes:
    """Return the body of the response to a message that is no valid request."""
    return orjson.dumps({"error": message})


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Options that all connections of a server share."""

    max_age_s: float
    """Mean age at which a response closes its connection; each varies by up to a quarter."""
    receive_timeout_s: float
    """A request must be complete this long after its first byte."""
    direct: FastPath | None = None
    """Serves requests without ASGI where it can; None: every request goes through ASGI."""
    known_heads: KnownHeads = field(default_factory=KnownHeads)
    receiving: SharedBound = field(default_factory=lambda: SharedBound(receiving_bytes(0)))
    """Bytes that are arriving."""
    connections: SharedBound = field(default_factory=lambda: SharedBound(2048))
    """Open connections."""
    sending: SharedBound = field(default_factory=lambda: SharedBound(receiving_bytes(0)))
    """Bytes of answers that their clients have not read yet."""
    reads: ReadTurns = field(default_factory=ReadTurns)
    """Reads of all sockets."""
    refusal: Callable[[int, str], bytes] = plain_refusal
    """The body of a refusal in the form of the server's errors, by status and message."""
