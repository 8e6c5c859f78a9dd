"""PURE. Heads of answers as bytes: status line and headers, without the empty line at the end."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from headroom_server.connection import Headers

CLOSE = b"connection: close\r\n"
JSON = STATUS_LINE[200] + b"content-type: application/json\r\ncontent-length: %d\r\n"
"""Of a 200 whose body is JSON of so many bytes."""


def head_of(status: int, headers: Headers) -> bytes:
    """Any status and headers; the names are in lower case."""
    parts = [STATUS_LINE[status]]
    for name, value in headers:
        parts += (name, b": ", value, b"\r\n")
    return b"".join(parts)
