"""The outermost ASGI layer of a generating server: serves generation, routes the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from fastapi import Response
from starlette.exceptions import HTTPException

from headroom_server.connection import connection_of
from headroom_server.errors import InvalidRequestError, RequestError
from headroom_server.openai_api.endpoints import endpoint_of
from headroom_server.openai_api.errors import ErrorFields, fields_of
from headroom_server.openai_api.service import GenerationService
from headroom_server.released_errors import release
from headroom_server.web.application.failures import detail_of, failure_of, headers_of
from headroom_server.web.close_policy import ClosePolicy

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class GenerationMiddleware:
    """Serves generation, passes other requests to `app`, and turns errors into responses."""

    def __init__(self, app: ASGIApp, service: GenerationService, closing: ClosePolicy) -> None:
        self._app = app
        self._service = service
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        endpoint = endpoint_of(scope["path"]) if scope["method"] == "POST" else None
        started = False

        async def note(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                if endpoint is None and self._closing.due(connection_of(scope)):
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        try:
            if endpoint is None:
                await self._app(scope, receive, note)
            else:
                await self._service.serve(*endpoint, scope, receive, note)
        except Exception as error:
            if started:
                raise
            await self._fail(error, scope, receive, send)

    async def _fail(self, error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
        if isinstance(error, InvalidRequestError) and not error.counted:
            self._service.generator.ledger.reject(error.reason)
        answer = error_response(error, scope["path"])
        release(error)
        if self._closing.due(connection_of(scope)) or any(
            name == b"expect" for name, _ in scope["headers"]
        ):
            answer.headers["connection"] = "close"
        await answer(scope, receive, send)


def error_response(error: Exception, path: str) -> Response:
    """Return the response to a failed request, in the form of the path's protocol."""
    if isinstance(error, RequestError):
        fields, status = fields_of(error), error.status
    elif isinstance(error, HTTPException):
        fields = ErrorFields(detail_of(error, path), "invalid_request_error", None, None)
        status = error.status_code
    else:
        failure = failure_of(error)  # logs it
        message = orjson.loads(failure.body)["error"]
        fields, status = ErrorFields(message, "server_error", None, None), failure.status_code
    body = fields.open_inference() if path.startswith("/v2/") else fields.encoded()
    return Response(body, status, headers_of(error))
