"""The FastAPI application of the models. It starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Response

from headroom_server import __version__
from headroom_server.errors import InvalidRequestError
from headroom_server.runtime.control import Control
from headroom_server.runtime.registry import Models
from headroom_server.runtime.store import ModelStore
from headroom_server.web.application.control import add_control
from headroom_server.web.application.documentation import add_documentation
from headroom_server.web.application.failures import failure_of
from headroom_server.web.application.middleware import InferenceMiddleware
from headroom_server.web.application.openapi import paths_of
from headroom_server.web.application.routes import add_routes
from headroom_server.web.close_policy import ClosePolicy
from headroom_server.web.inference.direct import DirectInference
from headroom_server.web.inference.requests_and_responses import Inference
from headroom_server.web.shared_bound import SharedBound, receiving_bytes

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class Application(FastAPI):
    """FastAPI with one middleware instead of its own six.

    Those serve features that these routes do not use (dependencies, exit stacks, form limits,
    exporters) and cost more CPU per request than the rest of its processing.
    """

    def __init__(
        self,
        models: Models,
        *,
        max_body_bytes: int,
        max_receiving_bytes: int | None = None,
        store: ModelStore | None = None,
        explicit: bool = False,
    ) -> None:
        super().__init__(
            title="Headroom model server",
            version=__version__,
            description="Serves models with dynamic batching.",
            docs_url=None,  # loads scripts of a CDN into this origin
            redoc_url=None,
            redirect_slashes=False,
            swagger_ui_oauth2_redirect_url=None,
            telemetry={"tracing": False, "metrics": False, "logs": False},
        )
        self._models = models
        self.receiving = SharedBound(
            receiving_bytes(max_body_bytes) if max_receiving_bytes is None else max_receiving_bytes
        )
        self._inference = Inference(models, max_body_bytes, self.receiving)
        self._closing = ClosePolicy(models)
        described = list(self.router.routes)
        add_routes(self, models)
        add_documentation(self)
        if store is not None:
            add_control(self, Control(models, store, explicit=explicit))
        # routes are tried in order: the documentation's come last
        self.router.routes[:] = [*self.router.routes[len(described) :], *described]

    def build_middleware_stack(self) -> ASGIApp:
        """Wrap the router in the inference middleware."""
        return InferenceMiddleware(self.router, self._inference, self._closing, self._answer)

    def direct(self) -> DirectInference:
        """Return the fast path for inference: the same responses with less CPU."""
        return DirectInference(self._inference, self._closing, self._answer)

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document, with the names, shapes and types of loaded models."""
        general = super().openapi()
        return general | {"paths": paths_of(general["paths"], self._models.all())}

    def _answer(self, error: Exception, path: str = "") -> Response:
        if isinstance(error, InvalidRequestError) and not error.counted:
            self._models.ledger.reject(error.reason)
        return error_answer(error, path)


def error_answer(error: Exception, path: str) -> Response:
    """Return the response to a failed request for a path."""
    failure = failure_of(error, path)
    return Response(failure.body, failure.status_code, failure.headers)
