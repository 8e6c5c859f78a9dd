"""The outermost ASGI layer: inference on the short way, the router for the rest, errors, closing.

Every answer closes its connection while the server drains, once the connection is older than its
jittered maximal age, and while more than two full batches wait: a ClusterIP balances connections,
so that a client that kept one for ever would never reach a new replica, and those who met a
crowded one would stay with it. A connection is closed after an answer, never while idle, so that
no request crosses the closing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from headroom_server.connection import connection_of
from headroom_server.web.inference import Inference

if TYPE_CHECKING:
    from fastapi import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CLOSE = (b"connection", b"close")
SENT_AWAY_PER_S = 32
"""Connections that a crowded replica closes per second: enough to spread clients, while to open a
new one for every request would cost the most where there is the least to spare."""


class Life(Protocol):
    """When clients do better with another replica."""

    @property
    def draining(self) -> bool:
        """On the way out."""

    @property
    def crowded(self) -> bool:
        """More waits than two full batches."""


class Edge:
    """Answers inference itself, hands the rest to `app`, and turns errors into answers."""

    def __init__(
        self,
        app: ASGIApp,
        inference: Inference,
        life: Life,
        error_answer: Callable[[Exception], Response],
    ) -> None:
        self._app = app
        self._inference = inference
        self._life = life
        self._error_answer = error_answer
        self._second = self._sent_away = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        try:
            answer = await self._inference.answer(scope, receive)
        except Exception as error:  # noqa: BLE001 - the last resort, which logs it
            await self._fail(error, scope, receive, send)
            return
        if answer is None:
            await self._route(scope, receive, send)
            return
        headers, connection, close = answer.headers, connection_of(scope), self._closes(scope)
        if connection.answer is not None and connection.answer(headers, answer.body, close):
            return
        if close:
            headers.append(CLOSE)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def note(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start" and self._closes(scope):
                message["headers"] = [*message["headers"], CLOSE]
            await send(message)

        try:
            await self._app(scope, receive, note)
        except Exception as error:
            if started:
                raise
            await self._fail(error, scope, receive, send)

    async def _fail(self, error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._error_answer(error)
        # Without a "100 Continue" the body may or may not follow: what comes next on this
        # connection could not be told apart.
        if self._closes(scope) or any(name == b"expect" for name, _ in scope["headers"]):
            answer.headers["connection"] = "close"
        await answer(scope, receive, send)

    def _closes(self, scope: Scope) -> bool:
        life, retire_at_s = self._life, connection_of(scope).retire_at_s
        now_s = asyncio.get_running_loop().time()
        return life.draining or now_s >= retire_at_s or (life.crowded and self._sends_away(now_s))

    def _sends_away(self, now_s: float) -> bool:
        second = int(now_s)
        if second != self._second:
            self._second, self._sent_away = second, 0
        self._sent_away += 1
        return self._sent_away <= SENT_AWAY_PER_S
