"""The routes for FastAPI: it documents all at /docs and serves the infrequent ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from headroom_server.protocols import descriptions
from headroom_server.protocols.request_options import TIMEOUT
from headroom_server.protocols.schemas import (
    ErrorBody,
    InferRequest,
    InferResponse,
    PredictRequest,
    PredictResponse,
    openapi_body,
)
from headroom_server.runtime.registry import Models
from headroom_server.runtime.served_model import ServedModel
from headroom_server.telemetry.exposition import CONTENT_TYPE
from headroom_server.telemetry.metrics import render_all
from headroom_server.web.application.raw_routes import Endpoint, add_route, json_response
from headroom_server.web.application.readiness import readiness

PREDICT = "/v1/models/{model}:predict"
INFER = ("/v2/models/{model}/infer", "/v2/models/{model}/versions/{version}/infer")

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "Invalid input."},
    404: {"model": ErrorBody, "description": "Unknown model or version."},
    408: {"model": ErrorBody, "description": "The request was not complete in time."},
    413: {"model": ErrorBody, "description": "The body is too large, or has too many items."},
    415: {"model": ErrorBody, "description": "The body is compressed."},
    429: {
        "model": ErrorBody,
        "description": "The queue is full, or the deadline cannot be met; see Retry-After.",
    },
    431: {"model": ErrorBody, "description": "The headers are too long."},
    500: {"model": ErrorBody, "description": "The device or the model failed."},
    503: {"model": ErrorBody, "description": "Not ready, or stopping."},
    504: {
        "model": ErrorBody,
        "description": f"{TIMEOUT.decode()} passed while the request waited.",
    },
}


def add_routes(app: FastAPI, models: Models) -> None:
    """Add all routes."""
    _describe_inference(app)
    _health(app, models)
    _models(app, models)


def _get(app: FastAPI, path: str, tag: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
    def add(endpoint: Endpoint) -> Endpoint:
        add_route(app, "GET", path, endpoint, tag, **options)
        return endpoint

    return add


def _health(app: FastAPI, models: Models) -> None:
    unready: dict[int | str, dict[str, Any]] = {503: {"description": "It is not."}}

    @_get(app, "/v2/health/live", "health", responses=unready)
    async def live(_: Request) -> Response:
        """Return whether the process can serve at all; independent of load."""
        return json_response({"live": models.live}, 200 if models.live else 503)

    @_get(app, "/v2/health/ready", "health", responses=unready)
    async def ready(_: Request) -> Response:
        """Whether all models are warm: phase, seconds per phase, self-test; by name if several."""
        return json_response(readiness(models), 200 if models.ready else 503)

    @_get(app, "/metrics", "health")
    async def metrics(_: Request) -> Response:
        """Metrics in the Prometheus text format, from one instant."""
        text = render_all(models.snapshots(), models.unattributed)
        return Response(text, headers={"content-type": CONTENT_TYPE})


def _models(app: FastAPI, models: Models) -> None:
    def served(request: Request) -> ServedModel:
        return models.find(request.path_params["model"], request.path_params.get("version"))

    missing = {status: ERRORS[status] for status in (404, 503)}

    @_get(app, "/v2", "v2")
    async def server(_: Request) -> Response:
        """The server: name, version, protocol extensions."""
        return json_response(descriptions.server_metadata())

    @_get(app, "/v2/models/{model}", "v2", responses=missing)
    @_get(app, "/v2/models/{model}/versions/{version}", "v2", responses=missing)
    async def metadata(request: Request) -> Response:
        """The model's inputs and outputs."""
        one = served(request)
        runner, signature = one.runner, one.signature
        metadata_fields = descriptions.model_metadata(
            one.name, one.version, runner.engine.name, signature
        )
        metadata_fields["parameters"] = {
            "device": runner.engine.device,
            "emulated": runner.engine.emulated,
            "max_batch_size": runner.limits.max_batch_size,
        }
        return json_response(metadata_fields)

    @_get(app, "/v2/models/{model}/config", "v2", responses=missing)
    @_get(app, "/v2/models/{model}/versions/{version}/config", "v2", responses=missing)
    async def config(request: Request) -> Response:
        """The model's configuration in the form of Triton's clients."""
        one = served(request)
        engine, size = one.runner.engine.name, one.runner.limits.max_batch_size
        return json_response(descriptions.model_config(one.name, engine, one.signature, size))

    @_get(app, "/v2/models/{model}/ready", "v2", responses=missing)
    @_get(app, "/v2/models/{model}/versions/{version}/ready", "v2", responses=missing)
    async def model_ready(request: Request) -> Response:
        """As /v2/health/ready, for this model."""
        one = served(request)
        return json_response(
            {"name": one.name, "ready": one.runner.ready}, 200 if one.runner.ready else 503
        )


def _describe_inference(app: FastAPI) -> None:
    async def answered_by_the_middleware(_: Request) -> Response:
        raise HTTPException(404)

    described: tuple[tuple[str, type[BaseModel], type[BaseModel], str], ...] = (
        (PREDICT, PredictRequest, PredictResponse, "Typed JSON: one prediction per instance."),
        *((path, InferRequest, InferResponse, "Open Inference Protocol v2.") for path in INFER),
    )
    for path, takes, gives, words in described:
        add_route(
            app,
            "POST",
            path,
            answered_by_the_middleware,
            "inference",
            summary=words,
            description="",
            responses={200: {"model": gives}, **ERRORS},
            openapi_extra=openapi_body(takes),
        )
