"""The response to a failed request: status, headers and body."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import NamedTuple

import orjson
from starlette.exceptions import HTTPException

from headroom_server.connection import Headers
from headroom_server.errors import ExpiredError, RefusedError, RequestError

SHOULD_RETRY = "x-should-retry"
"""OpenAI's clients read it: without it they send a request twice more after a 504, and its deadline
passes again while the server is as slow."""

LONGEST_PATH = 200
"""Characters of a path that an error shows."""

log = logging.getLogger("headroom_server")


class Failure(NamedTuple):
    """A response."""

    status_code: int
    headers: dict[str, str]
    body: bytes

    @property
    def raw_headers(self) -> Headers:
        """The headers on the wire, with the body's length."""
        headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        return [*headers, (b"content-length", b"%d" % len(self.body))]


def detail_of(error: HTTPException, path: str) -> str:
    """Return the message of an error of the router, and where all paths are listed."""
    if error.status_code == HTTPStatus.NOT_FOUND:
        return f"no such path: {path:.{LONGEST_PATH}}; GET /docs lists all paths"
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = " or ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
        shown = f"{path:.{LONGEST_PATH}}"
        return f"the method must be {allowed} for {shown}; GET /docs lists all paths"
    return error.detail


def headers_of(error: Exception) -> dict[str, str]:
    """Return the headers of the response to an error: whether and when the client may retry."""
    headers = {"content-type": "application/json"}
    if isinstance(error, RefusedError):
        headers["retry-after"] = str(error.retry_after_s)
    if isinstance(error, ExpiredError):
        headers[SHOULD_RETRY] = "false"
    if isinstance(error, HTTPException):
        headers |= error.headers or {}
    return headers


def failure_of(error: Exception, path: str = "") -> Failure:
    """Return the response to an error at a path; unexpected ones are logged and not explained."""
    if isinstance(error, RequestError):
        status, message = error.status, error.message
    elif isinstance(error, HTTPException):
        status, message = error.status_code, detail_of(error, path)
    else:
        log.error("a request failed", exc_info=error)
        status, message = 500, "internal error; see the server's log"
    return Failure(status, headers_of(error), orjson.dumps({"error": message}))
