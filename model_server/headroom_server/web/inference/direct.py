"""The fast path: inference from the parser to the queue and from the batch to the socket, no ASGI.

A request that is complete when its headers are read, or soon after, needs neither a task nor a
scope: it is parsed, queued, and answered by the call that ends its batch. Everything else (large or
chunked bodies, pipelined requests, slow readers, "100 Continue", a model with a cache or that is
not loaded) goes through ASGI, with the same responses.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from headroom_server.connection import Connection, Headers
from headroom_server.device.batches import Outputs
from headroom_server.errors import InvalidRequestError, RequestError
from headroom_server.released_errors import release
from headroom_server.web.close_policy import ClosePolicy
from headroom_server.web.inference.known_heads import Head
from headroom_server.web.inference.requests_and_responses import Inference, ParsedRequest, Target
from headroom_server.web.inference.response_heads import head_of

if TYPE_CHECKING:
    from starlette.responses import Response

_PLAIN = re.compile(rb"/v[12]/models/[^%?#\x00-\x20\x7f-\xff]+")
"""A path without escapes, query or fragment."""


@lru_cache(maxsize=64)
def _plain(url: bytes) -> str | None:
    return url.decode("ascii") if _PLAIN.fullmatch(url) else None


MAX_BODY_BYTES = 64 * 1024
"""Larger bodies are received through ASGI, which has back pressure."""


class _NoWaiters:
    """An event without waiters."""

    def set(self) -> None:
        """Do nothing."""


T = TypeVar("T")


class Exchange(Generic[T]):
    """One request, what it is for, and its response.

    Its connection stores it in place of uvicorn's ASGI cycle and uses these attributes of it.
    """

    __slots__ = (
        "arrived_s",
        "body",
        "disconnected",
        "head",
        "keep_alive",
        "response_complete",
        "response_started",
        "target",
    )
    message_event = _NoWaiters()

    def __init__(self, target: T, head: Head, arrived_s: float) -> None:
        self.target = target
        self.head = head
        self.arrived_s = arrived_s
        self.keep_alive = head.keep_alive
        self.body = b""
        self.disconnected = self.response_started = self.response_complete = False


Respond = Callable[[Exchange[Any], bytes, bytes, bool], None]
"""Writes a response: head, body, and whether it is the connection's last."""


class FastPath(Protocol):
    """Serves requests without ASGI."""

    def head(self, url: bytes, headers: Headers, *, keep_alive: bool) -> Head | None:
        """Return a POST's head; None if this path cannot serve it."""

    def begin(self, head: Head) -> Exchange[Any] | None:
        """Return the exchange of a POST whose head is complete; None if ASGI must serve it."""

    def serve(self, exchange: Exchange[Any], connection: Connection, respond: Respond) -> None:
        """Serve a complete request; it is answered later, by `respond` or as a stream."""


class DirectInference:
    """The fast path of models that batch: serves exchanges."""

    def __init__(
        self,
        inference: Inference,
        closing: ClosePolicy,
        error_answer: Callable[[Exception], Response],
    ) -> None:
        self._inference = inference
        self._max_body_bytes = min(MAX_BODY_BYTES, inference.max_body_bytes)
        self._closing = closing
        self._error_answer = error_answer

    def head(self, url: bytes, headers: Headers, *, keep_alive: bool) -> Head | None:
        """Return a POST's head; None if this path cannot serve it for any model."""
        by_name = dict(headers)
        length = by_name.get(b"content-length")
        if length is None or len(length) > 10 or int(length) > self._max_body_bytes:
            return None
        path = _plain(url)
        return None if path is None else Head(path, by_name, int(length), keep_alive)

    def begin(self, head: Head) -> Exchange[Target] | None:
        """Return the exchange of a POST whose head is complete; None if ASGI must serve it."""
        try:
            target = self._inference.find(head.path)
        except InvalidRequestError:
            return None
        if target is None or target.served.runner.looks_up:
            return None
        return Exchange(target, head, target.served.runner.clock())

    def serve(self, exchange: Exchange[Target], connection: Connection, respond: Respond) -> None:
        """Queue a complete request; `respond` is always called, later."""
        served = exchange.target.served
        try:
            parsed = exchange.target.read(exchange.head.headers, exchange.body)
            served.runner.submit(
                parsed.work,
                arrived_s=exchange.arrived_s,
                options=parsed.options,
                connection=connection,
                on_done=partial(self._answer, exchange, connection, respond, parsed),
            )
        except Exception as error:  # noqa: BLE001 - the last resort, which logs it
            if isinstance(error, InvalidRequestError):
                served.count_invalid(error)
            # not now: the parser is running, and following requests are answered after this one
            loop = asyncio.get_running_loop()
            loop.call_soon(self._fail, exchange, connection, respond, error)

    def _answer(
        self,
        exchange: Exchange[Target],
        connection: Connection,
        respond: Respond,
        parsed: ParsedRequest,
        result: Outputs | RequestError,
    ) -> None:
        if exchange.disconnected:
            return
        if isinstance(result, RequestError):
            self._fail(exchange, connection, respond, result)
            return
        try:
            answer = parsed.render(result)
        except Exception as error:  # noqa: BLE001 - the last resort, which logs it
            self._fail(exchange, connection, respond, error)
            return
        respond(exchange, answer.head, answer.body, self._closing.due(connection))

    def _fail(
        self,
        exchange: Exchange[Target],
        connection: Connection,
        respond: Respond,
        error: Exception,
    ) -> None:
        answer, last = self._error_answer(error), self._closing.due(connection)
        release(error)
        head = head_of(answer.status_code, answer.raw_headers)
        respond(exchange, head, bytes(answer.body), last)
