"""The outermost ASGI layer: serves inference, routes the rest, renders errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headroom_server.connection import connection_of
from headroom_server.released_errors import release
from headroom_server.web.close_policy import ClosePolicy
from headroom_server.web.inference.requests_and_responses import Inference

if TYPE_CHECKING:
    from fastapi import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CLOSE = (b"connection", b"close")


class InferenceMiddleware:
    """Serves inference, passes other requests to `app`, and turns errors into responses."""

    def __init__(
        self,
        app: ASGIApp,
        inference: Inference,
        closing: ClosePolicy,
        error_answer: Callable[[Exception, str], Response],
    ) -> None:
        self._app = app
        self._inference = inference
        self._closing = closing
        self._error_answer = error_answer

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
        connection, close = connection_of(scope), self._closes(scope)
        if connection.answer is not None and connection.answer(answer.head, answer.body, close):
            return
        headers = answer.headers
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
        answer = self._error_answer(error, scope["path"])
        release(error)
        # Without "100 Continue" the body may or may not follow, so the next request on this
        # connection could not be recognized.
        if self._closes(scope) or any(name == b"expect" for name, _ in scope["headers"]):
            answer.headers["connection"] = "close"
        await answer(scope, receive, send)

    def _closes(self, scope: Scope) -> bool:
        return self._closing.due(connection_of(scope))
