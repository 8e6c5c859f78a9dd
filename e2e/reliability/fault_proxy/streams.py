"""The events that a faulty watch stream passes on."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from reliability.fault_proxy.rules import Fault, LoseEvents, RepeatEvents, Silence


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One watch as its reader sees it; an immutable value."""

    seen: int = 0
    silent: bool = False
    """Once silent, a stream stays so: its reader has to notice and begin another."""
    held: bytes = b""
    """An event that comes again after the next."""

    def passed(self, fault: Fault | None, line: bytes) -> tuple[tuple[bytes, ...], Stream]:
        """Return the lines that reach the reader now, and the stream after them."""
        if self.silent or isinstance(fault, Silence):
            return (), replace(self, silent=True)
        after = replace(self, seen=self.seen + 1, held=b"")
        if isinstance(fault, LoseEvents) and after.seen % fault.every == 0:
            return (), after
        again = (self.held,) if self.held else ()
        if isinstance(fault, RepeatEvents):
            after = replace(after, held=line)
        return (line, *again), after


def error_event(code: int, message: str) -> bytes:
    """One line that ends a watch: `410` says that the version asked for is too old."""
    reason = "Expired" if code == 410 else "InternalError"
    event = {"type": "ERROR", "object": status(code, message, reason)}
    return json.dumps(event).encode() + b"\n"


def status(code: int, message: str, reason: str = "") -> dict[str, object]:
    """A failure in the API server's form."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason or _REASONS.get(code, "InternalError"),
        "code": code,
    }


_REASONS = {
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
    504: "Timeout",
}
