"""The FastAPI application around a runner. It starts nothing: serving does."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response

from headroom_server import __version__
from headroom_server.errors import InvalidRequestError, RequestError
from headroom_server.routes import add_routes, error_answer
from headroom_server.runner import Runner


def create_app(runner: Runner, *, max_body_bytes: int) -> FastAPI:
    """All routes, and one place where errors become answers and bad input is counted."""
    app = FastAPI(
        title="Headroom model server",
        version=__version__,
        description=f"Serves the model `{runner.model}`, batched on one device.",
    )

    async def answer(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestError)
        if isinstance(error, InvalidRequestError):
            runner.ledger.reject(error.reason)
        return error_answer(error)

    app.add_exception_handler(RequestError, answer)
    add_routes(app, runner, max_body_bytes)
    return app
