"""The FastAPI application of a generating model. It starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from headroom_server import __version__
from headroom_server.errors import UnknownModelError, public
from headroom_server.generation.text.model_text import ModelText
from headroom_server.openai_api.bodies.chat_schemas import ChatFields
from headroom_server.openai_api.bodies.completion_schemas import CompletionFields
from headroom_server.openai_api.direct import DirectGeneration
from headroom_server.openai_api.generate_extension import GenerateFields
from headroom_server.openai_api.middleware import GenerationMiddleware, error_response
from headroom_server.openai_api.service import GenerationService
from headroom_server.protocols import descriptions
from headroom_server.protocols.schemas import openapi_body
from headroom_server.runtime.generator import Generator
from headroom_server.telemetry.exposition import CONTENT_TYPE
from headroom_server.telemetry.generation_metrics import render
from headroom_server.web.close_policy import ClosePolicy
from headroom_server.web.receiving import Shares, receiving_bytes
from headroom_server.web.routes import DirectRoute

if TYPE_CHECKING:
    from pydantic import BaseModel
    from starlette.types import ASGIApp

    from headroom_server.web.routes import Endpoint

UNREAD_BYTES = 64 << 20
EXTENSIONS = ("generate",)


class GenerationApplication(FastAPI):
    """FastAPI with one middleware, which serves what is hot."""

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
            redoc_url=None,
            redirect_slashes=False,
            swagger_ui_oauth2_redirect_url=None,
            telemetry={"tracing": False, "metrics": False, "logs": False},
        )
        self.receiving = Shares(
            receiving_bytes(max_body_bytes) if max_receiving_bytes is None else max_receiving_bytes
        )
        self.service = GenerationService(
            generator,
            text,
            max_body_bytes=max_body_bytes,
            receiving=self.receiving,
            unread=Shares(max_unread_bytes),
            unread_timeout_s=unread_timeout_s,
            identity=identity,
        )
        self._closing = ClosePolicy(generator)
        described = list(self.router.routes)
        _add_health(self, generator)
        _add_models(self, generator)
        _describe(self, "/v1/completions", CompletionFields, "Completes prompts.")
        _describe(self, "/v1/chat/completions", ChatFields, "Answers a conversation.")
        for action in ("generate", "generate_stream"):
            summary = "Open Inference Protocol: generates text."
            _describe(self, f"/v2/models/{{model}}/{action}", GenerateFields, summary)
        self.router.routes[:] = [*self.router.routes[len(described) :], *described]

    def direct(self) -> DirectGeneration:
        """Return the fast path."""
        return DirectGeneration(self.service, self._closing, error_response)

    def build_middleware_stack(self) -> ASGIApp:
        """Wrap the router."""
        return GenerationMiddleware(self.router, self.service, self._closing)


def _get(app: FastAPI, path: str, endpoint: Endpoint, tag: str) -> None:
    app.router.add_api_route(
        path,
        endpoint,
        methods=["GET"],
        route_class_override=DirectRoute,
        tags=[tag],
        response_model=None,
    )


def _json(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


def _add_health(app: FastAPI, generator: Generator) -> None:
    async def live(_: Request) -> Response:
        """Whether the process can serve at all; independent of load."""
        return _json({"live": generator.live}, 200 if generator.live else 503)

    async def ready(_: Request) -> Response:
        """Whether the model is warm: phase, seconds per phase, warmed shapes, self-test."""
        return _json(readiness(generator), 200 if generator.ready else 503)

    async def metrics(_: Request) -> Response:
        """Metrics in the Prometheus text format, from one instant."""
        return Response(render(generator.snapshot()), headers={"content-type": CONTENT_TYPE})

    _get(app, "/v2/health/live", live, "health")
    _get(app, "/v2/health/ready", ready, "health")
    _get(app, "/health", ready, "health")
    _get(app, "/metrics", metrics, "health")


def readiness(generator: Generator) -> dict[str, Any]:
    """Return the state of a model's life."""
    seconds = generator.lifecycle.seconds(generator.clock())
    warm = generator.warm_engine
    return {
        "ready": generator.ready,
        "phase": generator.lifecycle.phase,
        "phase_seconds": {str(phase): round(spent, 3) for phase, spent in seconds.items()},
        "self_test": warm and {"p95_s": round(warm.self_test_p95_s, 6)},
        "engine": generator.engine.name,
        "device": generator.engine.device,
        "emulated": generator.engine.emulated,
        "limits": warm and warm.limits._asdict(),
        "shapes": [] if warm is None else [shape._asdict() for shape in warm.shapes],
        "suspected": generator.suspected,
        "failure": generator.failure and public(generator.failure),
    }


def _add_models(app: FastAPI, generator: Generator) -> None:
    created = int(generator.started_at_s)

    def described() -> dict[str, Any]:
        warm = generator.warm_engine
        return {
            "id": generator.model,
            "object": "model",
            "created": created,
            "owned_by": "headroom",
            "max_model_len": warm and warm.limits.context_tokens,
        }

    def check(request: Request) -> None:
        name = request.path_params["model"]
        if name != generator.model:
            raise UnknownModelError(
                f"model must be {generator.model!r}, which this server serves; got {name!r:.100}"
            )

    async def models(_: Request) -> Response:
        """The served model."""
        return _json({"object": "list", "data": [described()]})

    async def model(request: Request) -> Response:
        """One model."""
        check(request)
        return _json(described())

    async def server(_: Request) -> Response:
        """The server: name, version, protocol extensions."""
        return _json(descriptions.server_metadata(EXTENSIONS))

    async def metadata(request: Request) -> Response:
        """The model's inputs and outputs, as over gRPC."""
        check(request)
        return _json(descriptions.text_metadata(generator.model, generator.engine.name))

    async def ready(request: Request) -> Response:
        """As /v2/health/ready, for this model."""
        check(request)
        found = generator.ready
        return _json({"name": generator.model, "ready": found}, 200 if found else 503)

    _get(app, "/v1/models", models, "models")
    _get(app, "/v1/models/{model}", model, "models")
    _get(app, "/v2", server, "v2")
    _get(app, "/v2/models/{model}", metadata, "v2")
    _get(app, "/v2/models/{model}/ready", ready, "v2")


def _describe(app: FastAPI, path: str, takes: type[BaseModel], summary: str) -> None:
    async def served_by_the_middleware(_: Request) -> Response:
        raise HTTPException(404)

    app.router.add_api_route(
        path,
        served_by_the_middleware,
        methods=["POST"],
        route_class_override=DirectRoute,
        tags=["generation"],
        summary=summary,
        response_model=None,
        openapi_extra=openapi_body(takes),
    )
