"""The FastAPI application around a runner. It starts nothing: serving does."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import FastAPI, Response
from starlette.exceptions import HTTPException

from headroom_server import __version__
from headroom_server.catalogue import OneModel, Served
from headroom_server.edge import Edge
from headroom_server.errors import InvalidRequestError, RefusedError, RequestError
from headroom_server.inference import Inference
from headroom_server.openapi import paths_of
from headroom_server.routes import add_routes
from headroom_server.runner import Runner

if TYPE_CHECKING:
    from starlette.types import ASGIApp

log = logging.getLogger("headroom_server")


class Application(FastAPI):
    """FastAPI with one layer of our own in place of its six.

    They serve what these routes do not use (dependencies, exit stacks, form limits, exporters) and
    cost more per request than everything that is done to answer it.
    """

    def __init__(self, runner: Runner, *, max_body_bytes: int) -> None:
        super().__init__(
            title="Headroom model server",
            version=__version__,
            description=f"Serves the model `{runner.model}`, batched on one device.",
            redoc_url=None,
            redirect_slashes=False,
            swagger_ui_oauth2_redirect_url=None,
            telemetry={"tracing": False, "metrics": False, "logs": False},
        )
        self._runner = runner
        self.catalogue = OneModel(Served(runner))
        self._inference = Inference(self.catalogue, max_body_bytes)
        described = list(self.router.routes)
        add_routes(self, runner, self.catalogue)
        # routes are tried in order: those of the documentation come last
        self.router.routes[:] = [*self.router.routes[len(described) :], *described]

    def build_middleware_stack(self) -> ASGIApp:
        """The edge, then the router."""
        return Edge(self.router, self._inference, self._runner, self._answer)

    def openapi(self) -> dict[str, Any]:
        """The document; loaded models stand in it with their own names, shapes and types."""
        general = super().openapi()
        return general | {"paths": paths_of(general["paths"], self.catalogue.all())}

    def _answer(self, error: Exception) -> Response:
        if isinstance(error, InvalidRequestError):
            self._runner.ledger.reject(error.reason)
        return error_answer(error)


def error_answer(error: Exception) -> Response:
    """The answer to a request that failed; what nobody foresaw is logged, and says nothing."""
    headers = {"content-type": "application/json"}
    if isinstance(error, RefusedError):
        headers["retry-after"] = str(error.retry_after_s)
    if isinstance(error, RequestError):
        status, message = error.status, error.message
    elif isinstance(error, HTTPException):
        status, message = error.status_code, error.detail
        headers |= error.headers or {}
    else:
        log.error("a request failed", exc_info=error)
        status, message = 500, "internal error; the server's log says more"
    return Response(orjson.dumps({"error": message}), status, headers)
