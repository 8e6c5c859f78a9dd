"""The pure-ASGI layer between uvicorn and the application: closing connections, absent clients.

- Every answer closes its connection while the server drains, and once the connection is older than
  its jittered maximal age: a ClusterIP balances connections, so that a client that kept one for
  ever would never reach a new replica. Connections are closed after an answer, never while idle, so
  that no request crosses the closing.
- A client that leaves before it is answered is noticed by whoever awaits `until_disconnected`.
  Nothing between uvicorn and the routes may replace `receive` by a queue of its own, or that would
  never return.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from headroom_server.errors import DisconnectedError, TooLargeError

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CLOSE = (b"connection", b"close")
RETIRE_AT = "retire_at_s"
"""Key of a connection's end of life in the ASGI state, on the clock of the loop."""


class Edge:
    """Wraps the application."""

    def __init__(self, app: App, draining: Callable[[], bool], clock: Callable[[], float]) -> None:
        self._app = app
        self._draining = draining
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        retire_at_s = scope.get("state", {}).get(RETIRE_AT, float("inf"))

        async def send_or_close(message: Message) -> None:
            if message["type"] == "http.response.start" and (
                self._draining() or self._clock() >= retire_at_s
            ):
                message["headers"] = [*message["headers"], CLOSE]
            await send(message)

        await self._app(scope, receive, send_or_close)


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


async def until_disconnected(receive: Receive) -> None:
    """Return when the client has left. The body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
