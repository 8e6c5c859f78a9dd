"""One HTTP/1.1 request as bytes: its end, its deadline, and its forwarded form. Pure.

The request is forwarded unchanged, except for headers of the connection and for the deadline, which
is shortened by the time that the request was held.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

import httptools

from headroom.activator.held_request import HEAD_BYTES, Refusal
from headroom.gateway.listener.retries import DEADLINE, GRPC_DEADLINE, IDEMPOTENT, NO_RETRY

PIECE = 1 << 14
"""Size of a read and of a write; a connection holds a few of them."""
_GRPC_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_HEAD_END = b"\r\n\r\n"
_CONNECTION = frozenset({b"connection", b"keep-alive", b"proxy-connection"})


class MalformedError(ValueError):
    """The bytes are not an HTTP request."""


@dataclass(slots=True)
class Incoming:
    """A request that is being received; call `feed` until it is complete."""

    head: bytes = b""
    """Request line and headers with the empty line; empty until completely received."""
    pieces: list[bytearray] = field(default_factory=list)
    """The body with its framing. Pieces of one size leave no gaps in memory, as growing does."""
    complete: bool = False
    upgrade: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    """Headers by lower-case name; the last one wins."""
    _raw: bytearray = field(default_factory=bytearray)
    _parser: httptools.HttpRequestParser | None = None

    def feed(self, data: bytes) -> None:
        """Add received bytes; raise MalformedError."""
        if self._parser is None:
            self._parser = httptools.HttpRequestParser(self)
        if self.head:
            self.add(data)
        else:
            self._raw += data
            head, end, body = bytes(self._raw).partition(_HEAD_END)
            if end:
                self.head, self._raw = head + end, bytearray()
                self.add(body)
            elif len(self._raw) > HEAD_BYTES:
                raise MalformedError(
                    f"request line and headers must have at most {HEAD_BYTES} bytes"
                )
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.upgrade = self.complete = True
        except httptools.HttpParserError as error:
            raise MalformedError(str(error)) from error

    def add(self, data: bytes) -> None:
        """Add bytes behind the head, to the last piece where it is small."""
        if self.pieces and len(self.pieces[-1]) + len(data) <= PIECE:
            self.pieces[-1] += data
        elif data:
            self.pieces.append(bytearray(data))

    def drop(self) -> None:
        """Release its memory now: parser and request refer to each other."""
        self._parser = None
        self.pieces.clear()
        self._raw.clear()

    @property
    def rest(self) -> bytes:
        """The body with its framing, as one copy."""
        return b"".join(self.pieces)

    @property
    def size(self) -> int:
        """Bytes of head and body."""
        return len(self.head) + sum(map(len, self.pieces))

    @property
    def timeout_s(self) -> float | None:
        """The request's timeout in seconds; None if it has none."""
        stated = self.headers.get(DEADLINE, "")
        seconds = float(stated) if _SECONDS.fullmatch(stated) else 0.0
        if seconds > 0.0:
            return seconds
        found = re.fullmatch(r"([0-9]{1,8})([HMSmun])", self.headers.get(GRPC_DEADLINE, ""))
        return float(found[1]) * _GRPC_UNITS[found[2]] if found else None

    @property
    def may_repeat(self) -> bool:
        """Whether the request may run twice."""
        return self.headers.get(IDEMPOTENT, "").lower() != "false"

    def forwarded_head(self, held_s: float) -> bytes:
        """Return the head for a replica, with the deadline shortened by `held_s`."""
        first, *lines = self.head[: -len(_HEAD_END)].split(b"\r\n")
        kept = [line for line in lines if not self._is_rewritten(_name(line))]
        left_s = None if self.timeout_s is None else max(0.001, self.timeout_s - held_s)
        if left_s is not None and DEADLINE in self.headers:
            kept.append(f"{DEADLINE}: {left_s:.3f}".encode())
        if left_s is not None and GRPC_DEADLINE in self.headers:
            kept.append(f"{GRPC_DEADLINE}: {max(1, round(1e3 * left_s))}m".encode())
        if not self.upgrade:
            kept.append(b"connection: close")
        return b"\r\n".join([first, *kept]) + _HEAD_END

    def _is_rewritten(self, name: bytes) -> bool:
        if name in _CONNECTION:
            return not self.upgrade
        timed = name in (DEADLINE.encode(), GRPC_DEADLINE.encode())
        return timed and self.timeout_s is not None

    def on_header(self, name: bytes, value: bytes) -> None:
        """Callback of the parser."""
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()

    def on_message_complete(self) -> None:
        """Callback of the parser."""
        self.complete = True


_SECONDS = re.compile(r"[0-9]{1,18}(\.[0-9]{0,18})?")
"""The gateway's and the model server's pattern: float() alone takes 1_0 and 1e1."""


def _name(line: bytes) -> bytes:
    return line.partition(b":")[0].strip().lower()


_REASONS = {400: "Bad Request", 413: "Content Too Large", 429: "Too Many Requests"}


def answer(refusal: Refusal) -> bytes:
    """Render a refusal as an HTTP response: JSON with a reason, like the model server's."""
    body = json.dumps({"error": refusal.message, "reason": str(refusal.why)}).encode()
    phrase = _REASONS.get(refusal.status, "Service Unavailable")
    again_s = refusal.retry_after_s
    lines = [
        f"HTTP/1.1 {refusal.status} {phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        f"{NO_RETRY}: true",
        *([] if again_s is None else [f"retry-after: {again_s}"]),
        "connection: close",
    ]
    return "\r\n".join(lines).encode() + _HEAD_END + body


def status_of(data: bytes) -> int | None:
    """Return the status code of a response from its first bytes; None if they are no response."""
    found = re.match(rb"HTTP/1\.[01] ([1-5][0-9]{2})[ \r]", data)
    return int(found[1]) if found else None
