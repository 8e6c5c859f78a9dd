"""Heads of HTTP responses as bytes, and the answers of inference. Pure."""

from __future__ import annotations

from typing import NamedTuple

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from headroom_server.connection import Headers
from headroom_server.protocols import open_inference

Header = tuple[bytes, bytes]

JSON = (b"content-type", b"application/json")
BYTES = (b"content-type", b"application/octet-stream")
HEAD_LENGTH = open_inference.HEAD_LENGTH.encode()
CLOSE_LINE = b"connection: close\r\n"
JSON_HEAD = STATUS_LINE[200] + b"content-type: application/json\r\ncontent-length: %d\r\n"
"""Head of a 200 response with a JSON body of this many bytes, without the final empty line."""


def head_of(status: int, headers: Headers) -> bytes:
    """Return a response's head as bytes, without the final empty line."""
    parts = [STATUS_LINE[status]]
    for name, value in headers:
        parts += (name, b": ", value, b"\r\n")
    return b"".join(parts)


class Answer(NamedTuple):
    """A body; the status is 200."""

    body: bytes
    json_bytes: int | None = None
    """Bytes of JSON, if tensors follow; None: all."""

    @property
    def headers(self) -> list[Header]:
        """The headers for ASGI."""
        length = (b"content-length", b"%d" % len(self.body))
        if self.json_bytes is None:
            return [JSON, length]
        return [BYTES, length, (HEAD_LENGTH, b"%d" % self.json_bytes)]

    @property
    def head(self) -> bytes:
        """The head for the wire."""
        if self.json_bytes is None:
            return JSON_HEAD % len(self.body)
        return head_of(200, self.headers)
