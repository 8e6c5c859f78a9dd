"""The pure-ASGI layer around the router: it closes connections and answers errors.

Every answer closes its connection while the server drains, once the connection is older than its
jittered maximal age, and while more than two full batches wait: a ClusterIP balances connections,
so that a client that kept one for ever would never reach a new replica, and those who met a
crowded one would stay with it. A connection is closed after an answer, never while idle, so that
no request crosses the closing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from headroom_server.connection import STATE_KEY, Connection
from headroom_server.errors import DisconnectedError, TooLargeError
from headroom_server.runner import Runner

if TYPE_CHECKING:
    from fastapi import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CLOSE = (b"connection", b"close")


class Edge:
    """Wraps the router: closes connections, and turns errors into answers."""

    def __init__(
        self, app: ASGIApp, runner: Runner, answer: Callable[[Exception], Response]
    ) -> None:
        self._app = app
        self._runner = runner
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        connection, loop = connection_of(scope), asyncio.get_running_loop()
        started = False

        async def send_or_close(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start" and (
                self._runner.draining
                or self._runner.crowded
                or loop.time() >= connection.retire_at_s
            ):
                message["headers"] = [*message["headers"], CLOSE]
            await send(message)

        try:
            await self._app(scope, receive, send_or_close)
        except Exception as error:
            if started:
                raise
            answer = self._answer(error)
            if any(name == b"expect" for name, _ in scope["headers"]):
                # Without a "100 Continue" the body may or may not follow: what comes next on this
                # connection could not be told apart.
                answer.headers["connection"] = "close"
            await answer(scope, receive, send_or_close)


def connection_of(scope: Scope) -> Connection:
    """The connection that a request came over; one of its own where the server tells of none."""
    connection: Connection = scope.get("state", {}).get(STATE_KEY) or Connection()
    return connection


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body.

    Raises:
        TooLargeError: as soon as it is known to hold more than `limit` bytes.
        DisconnectedError: where the client left before it was complete.
    """
    for name, value in scope["headers"]:
        if name == b"content-length" and int(value) > limit:
            raise TooLargeError(f"the body holds at most {limit} bytes; got {int(value)}")
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        chunks, size = [body], len(body)
        while message.get("more_body", False) and size <= limit:
            message = await receive()
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
        body = b"".join(chunks)
    if message["type"] == "http.disconnect":
        raise DisconnectedError
    if len(body) > limit:
        raise TooLargeError(f"the body holds at most {limit} bytes; got more")
    return body
