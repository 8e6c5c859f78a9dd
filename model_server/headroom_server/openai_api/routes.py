"""The routes of a generating model that FastAPI serves: health, models, tokens.

FastAPI documents those that are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from headroom_server.errors import public
from headroom_server.openai_api.bodies.chat_schemas import ChatFields
from headroom_server.openai_api.bodies.completion_schemas import CompletionFields
from headroom_server.openai_api.bodies.token_schemas import DetokenizeFields, TokenizeFields
from headroom_server.openai_api.generate_extension import GenerateFields
from headroom_server.openai_api.service import GenerationService
from headroom_server.openai_api.tokenization import Tokenization
from headroom_server.protocols import descriptions
from headroom_server.protocols.schemas import openapi_body
from headroom_server.runtime.generating.generator import Generator
from headroom_server.telemetry.exposition import CONTENT_TYPE
from headroom_server.telemetry.generation_metrics import render
from headroom_server.web.application.raw_routes import (
    Endpoint,
    add_route,
    encoded_response,
    json_response,
)

if TYPE_CHECKING:
    from pydantic import BaseModel


EXTENSIONS = ("generate", "model_configuration")


def add_routes(app: FastAPI, service: GenerationService) -> None:
    """Add all routes."""
    _add_health(app, service.generator)
    _add_models(app, service)
    _add_tokenization(app, Tokenization(service))
    _describe(app, "/v1/completions", CompletionFields, "Completes prompts.")
    _describe(app, "/v1/chat/completions", ChatFields, "Answers a conversation.")
    for action in ("generate", "generate_stream"):
        summary = "Open Inference Protocol: generates text."
        _describe(app, f"/v2/models/{{model}}/{action}", GenerateFields, summary)


def _get(app: FastAPI, path: str, endpoint: Endpoint, tag: str) -> None:
    add_route(app, "GET", path, endpoint, tag)


def _add_health(app: FastAPI, generator: Generator) -> None:
    async def live(_: Request) -> Response:
        """Return whether the process can serve at all; independent of load."""
        return json_response({"live": generator.live}, 200 if generator.live else 503)

    async def ready(_: Request) -> Response:
        """Return whether the model is warm: phase, seconds per phase, warmed shapes, self-test."""
        return json_response(readiness(generator), 200 if generator.ready else 503)

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


def _add_models(app: FastAPI, service: GenerationService) -> None:
    generator = service.generator
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
        service.reader.check_model(request.path_params["model"])

    async def models(_: Request) -> Response:
        """The served model."""
        return json_response({"object": "list", "data": [described()]})

    async def model(request: Request) -> Response:
        """One model."""
        check(request)
        return json_response(described())

    async def server(_: Request) -> Response:
        """The server: name, version, protocol extensions."""
        return json_response(descriptions.server_metadata(EXTENSIONS))

    async def metadata(request: Request) -> Response:
        """The model's inputs and outputs, as over gRPC."""
        check(request)
        return json_response(descriptions.text_metadata(generator.model, generator.engine.name))

    async def config(request: Request) -> Response:
        """The model's configuration in the form of Triton's clients, as over gRPC."""
        check(request)
        return json_response(descriptions.text_config(generator.model, generator.engine.name))

    async def ready(request: Request) -> Response:
        """As /v2/health/ready, for this model."""
        check(request)
        found = generator.ready
        return json_response({"name": generator.model, "ready": found}, 200 if found else 503)

    _get(app, "/v1/models", models, "models")
    _get(app, "/v1/models/{model}", model, "models")
    _get(app, "/v2", server, "v2")
    for path in ("/v2/models/{model}", "/v2/models/{model}/versions/1"):
        _get(app, path, metadata, "v2")
        _get(app, f"{path}/config", config, "v2")
        _get(app, f"{path}/ready", ready, "v2")


def _add_tokenization(app: FastAPI, tokens: Tokenization) -> None:
    async def tokenize(request: Request) -> Response:
        return encoded_response(await tokens.tokenize(request.scope, request.receive))

    async def detokenize(request: Request) -> Response:
        return encoded_response(await tokens.detokenize(request.scope, request.receive))

    for path, takes, endpoint, summary in (
        ("/tokenize", TokenizeFields, tokenize, "The tokens of a text or a conversation."),
        ("/detokenize", DetokenizeFields, detokenize, "The text of tokens."),
    ):
        _post(app, path, endpoint, takes, "tokens", summary)


def _describe(app: FastAPI, path: str, takes: type[BaseModel], summary: str) -> None:
    async def served_by_the_middleware(_: Request) -> Response:
        raise HTTPException(404)

    _post(app, path, served_by_the_middleware, takes, "generation", summary)


def _post(
    app: FastAPI, path: str, endpoint: Endpoint, takes: type[BaseModel], tag: str, summary: str
) -> None:
    add_route(app, "POST", path, endpoint, tag, summary=summary, openapi_extra=openapi_body(takes))
