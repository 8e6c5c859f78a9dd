"""The FastAPI application of a generating model. It starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI

from headroom_server import __version__
from headroom_server.generation.text.model_text import ModelText
from headroom_server.openai_api.direct import DirectGeneration
from headroom_server.openai_api.middleware import GenerationMiddleware, error_response
from headroom_server.openai_api.routes import add_routes
from headroom_server.openai_api.service import GenerationService
from headroom_server.runtime.generating.generator import Generator
from headroom_server.web.application.documentation import add_documentation
from headroom_server.web.close_policy import ClosePolicy
from headroom_server.web.shared_bound import SharedBound, receiving_bytes

if TYPE_CHECKING:
    from starlette.types import ASGIApp


UNREAD_BYTES = 64 << 20


class GenerationApplication(FastAPI):
    """FastAPI with one middleware, which serves the frequent routes."""

    def __init__(
        self,
        generator: Generator,
        text: ModelText,
        *,
        max_body_bytes: int,
        max_receiving_bytes: int | None = None,
        max_unread_bytes: int = UNREAD_BYTES,
        unread_timeout_s: float = 30.0,
        identity: str = "",
    ) -> None:
        super().__init__(
            title="Headroom model server",
            version=__version__,
            description="Generates text with continuous batching.",
            docs_url=None,  # loads scripts of a CDN into this origin
            redoc_url=None,
            redirect_slashes=False,
            swagger_ui_oauth2_redirect_url=None,
            telemetry={"tracing": False, "metrics": False, "logs": False},
        )
        self.receiving = SharedBound(
            receiving_bytes(max_body_bytes) if max_receiving_bytes is None else max_receiving_bytes
        )
        self.service = GenerationService(
            generator,
            text,
            max_body_bytes=max_body_bytes,
            receiving=self.receiving,
            unread=SharedBound(max_unread_bytes),
            unread_timeout_s=unread_timeout_s,
            identity=identity,
        )
        self._closing = ClosePolicy(generator)
        described = list(self.router.routes)
        add_routes(self, self.service)
        add_documentation(self)
        self.router.routes[:] = [*self.router.routes[len(described) :], *described]

    def direct(self) -> DirectGeneration:
        """Return the fast path."""
        return DirectGeneration(self.service, self._closing, error_response)

    def build_middleware_stack(self) -> ASGIApp:
        """Wrap the router."""
        return GenerationMiddleware(self.router, self.service, self._closing)
