"""Traces of inference over HTTP, by an ASGI layer around the application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headroom_server.connection import connection_of
from headroom_server.tracing.current import TRACE
from headroom_server.tracing.open_telemetry import Begun, OpenTelemetry

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

STATUS = "http.response.status_code"
GENERATION = ("/v1/completions", "/v1/chat/completions", "/generate", "/generate_stream")
TRACED = ("/infer", ":predict", *GENERATION)
"""Ends of the paths that are traced."""
CONTEXT = {b"traceparent": "traceparent", b"tracestate": "tracestate"}


class TracedHttp:
    """Begins and ends a trace for each inference request; other requests are not traced."""

    def __init__(self, app: ASGIApp, telemetry: OpenTelemetry) -> None:
        self._app = app
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path: str = scope.get("path", "")
        if scope.get("method") != "POST" or not path.endswith(TRACED):
            await self._app(scope, receive, send)
            return
        connection = connection_of(scope)
        connection.answer = connection.stream = None  # all answers come through `send`
        begun = self._begin(scope, path)
        status = 499  # the client left before anything was answered

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                header = (b"traceparent", begun.traceparent.encode())
                message = {**message, "headers": [*message["headers"], header]}
            await send(message)

        token = TRACE.set(begun.trace)
        try:
            await self._app(scope, receive, answer)
        finally:
            TRACE.reset(token)
            if begun.trace is not None:
                self._telemetry.end(begun.trace, {STATUS: status}, failed=status >= 500)

    def _begin(self, scope: Scope, path: str) -> Begun:
        carrier: dict[str, str] = {}
        for name, value in scope["headers"]:
            if name in CONTEXT:
                known = carrier.get(CONTEXT[name])
                value_text = value.decode("latin-1")
                carrier[CONTEXT[name]] = value_text if known is None else f"{known},{value_text}"
        attributes = {"http.request.method": "POST", "url.path": path[:256]}
        name = "POST /v2/models/{model}/" + path.rpartition("/")[2]
        if path.startswith("/v1/") and path.endswith(GENERATION):
            name = f"POST {path}"
        elif path.endswith(":predict"):
            name = "POST /v1/models/{model}:predict"
        return self._telemetry.begin(carrier, name, attributes)
