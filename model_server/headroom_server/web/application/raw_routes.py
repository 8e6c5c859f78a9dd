"""Routes whose endpoints get the raw request; FastAPI only documents them.

FastAPI's own handling (dependencies, exit stacks, a second error layer) costs 80 us per request and
is of no use to such an endpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


class RawRoute(APIRoute):
    """Calls the endpoint and sends its response."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Errors propagate to the middleware.

        HEAD is served as GET; the server sends no body for it.
        """
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        response = await self.endpoint(Request(scope, receive))
        await response(scope, receive, send)


def add_route(
    app: FastAPI, method: str, path: str, endpoint: Endpoint, tag: str, **options: Any
) -> None:
    """Add a route to the application itself: a separate router costs CPU per request."""
    app.router.add_api_route(
        path,
        endpoint,
        methods=[method],
        route_class_override=RawRoute,
        tags=[tag],
        response_model=None,
        **options,
    )


def json_response(value: object, status: int = 200) -> Response:
    """Return a response of one JSON value."""
    return encoded_response(orjson.dumps(value), status)


def encoded_response(body: bytes, status: int = 200) -> Response:
    """Return a response whose body is JSON already."""
    return Response(body, status, media_type="application/json")
