"""The routes for FastAPI: it documents all of them at /docs and serves those that are not hot."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from headroom_server.errors import public
from headroom_server.protocols import descriptions
from headroom_server.protocols.schemas import (
    ErrorBody,
    InferRequest,
    InferResponse,
    PredictRequest,
    PredictResponse,
    openapi_body,
)
from headroom_server.runtime.registry import Models
from headroom_server.runtime.runner import Runner
from headroom_server.runtime.served_model import ServedModel
from headroom_server.scheduling.request_options import TIMEOUT
from headroom_server.telemetry.exposition import CONTENT_TYPE
from headroom_server.telemetry.metrics import render_all

PREDICT = "/v1/models/{model}:predict"
INFER = ("/v2/models/{model}/infer", "/v2/models/{model}/versions/{version}/infer")

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "Invalid input."},
    404: {"model": ErrorBody, "description": "Unknown model or version."},
    408: {"model": ErrorBody, "description": "The request was not complete in time."},
    413: {"model": ErrorBody, "description": "Too many bytes or items."},
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


class DirectRoute(APIRoute):
    """A route whose endpoint gets the raw request.

    FastAPI's own handling (dependencies, exit stacks, a second error layer) costs 80 us per request
    and is of no use to such an endpoint.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the endpoint and send its response. Errors propagate to the middleware.

        HEAD is served as GET; the server sends no body for it.
        """
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        response = await self.endpoint(Request(scope, receive))
        await response(scope, receive, send)


Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


def add_routes(app: FastAPI, models: Models) -> None:
    """Add all routes to the application itself: a separate router costs CPU per request."""
    _describe_inference(app)
    _health(app, models)
    _models(app, models)


def _get(app: FastAPI, path: str, tag: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
    def add(endpoint: Endpoint) -> Endpoint:
        app.router.add_api_route(
            path,
            endpoint,
            methods=["GET"],
            route_class_override=DirectRoute,
            tags=[tag],
            response_model=None,
            **options,
        )
        return endpoint

    return add


def _json(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


def _health(app: FastAPI, models: Models) -> None:
    unready: dict[int | str, dict[str, Any]] = {503: {"description": "It is not."}}

    @_get(app, "/v2/health/live", "health", responses=unready)
    async def live(_: Request) -> Response:
        """Whether the process can serve at all; independent of load."""
        return _json({"live": models.live}, 200 if models.live else 503)

    @_get(app, "/v2/health/ready", "health", responses=unready)
    async def ready(_: Request) -> Response:
        """Whether all models are warm: phase, seconds per phase, self-test; by name if several."""
        return _json(_ready(models), 200 if models.ready else 503)

    @_get(app, "/metrics", "health")
    async def metrics(_: Request) -> Response:
        """Metrics in the Prometheus text format, from one instant."""
        text = render_all(models.snapshots(), models.unattributed)
        return Response(text, headers={"content-type": CONTENT_TYPE})


def _ready(models: Models) -> dict[str, Any]:
    served = list(models.all())
    if len(served) == 1:
        return _readiness(served[0].runner)
    each = [{"name": one.name, "version": one.version} | _readiness(one.runner) for one in served]
    return {"ready": models.ready, "models": each}


def _warmth(runner: Runner) -> dict[str, Any]:
    """Return every warmed shape with its first execution and the median of later ones."""
    warm = runner.warm
    if warm is None:
        return {"shapes": [], "compile": None}
    shapes = [
        {
            "items": shape.items,
            "length": shape.length,
            "first_seconds": round(shape.first_s, 6),
            "seconds": round(statistics.median(one.total_s for one in shape.later), 6),
        }
        for shape in warm.shapes
    ]
    return {"shapes": shapes, "compile": warm.compiled or None}


def _readiness(runner: Runner) -> dict[str, Any]:
    lifecycle, test = runner.lifecycle, runner.self_test
    seconds = lifecycle.seconds(runner.clock())
    return {
        "ready": runner.ready,
        "phase": lifecycle.phase,
        "phase_seconds": {str(phase): round(spent, 3) for phase, spent in seconds.items()},
        "self_test": test
        and {"p95_s": test.p95_s, "max_latency_s": test.max_latency_s, "passed": test.passed},
        "engine": runner.engine.name,
        "device": runner.engine.device,
        "emulated": runner.engine.emulated,
        **_warmth(runner),
        "devices_fit": runner.devices_fit,
        "suspected": runner.suspected,
        "failure": runner.failure and public(runner.failure),
    }


def _models(app: FastAPI, models: Models) -> None:
    def served(request: Request) -> ServedModel:
        return models.find(request.path_params["model"], request.path_params.get("version"))

    missing = {status: ERRORS[status] for status in (404, 503)}

    @_get(app, "/v2", "v2")
    async def server(_: Request) -> Response:
        """The server: name, version, protocol extensions."""
        return _json(descriptions.server_metadata())

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
        return _json(metadata_fields)

    @_get(app, "/v2/models/{model}/config", "v2", responses=missing)
    @_get(app, "/v2/models/{model}/versions/{version}/config", "v2", responses=missing)
    async def config(request: Request) -> Response:
        """The model's configuration in the form of Triton's clients."""
        one = served(request)
        engine, size = one.runner.engine.name, one.runner.limits.max_batch_size
        return _json(descriptions.model_config(one.name, engine, one.signature, size))

    @_get(app, "/v2/models/{model}/ready", "v2", responses=missing)
    @_get(app, "/v2/models/{model}/versions/{version}/ready", "v2", responses=missing)
    async def model_ready(request: Request) -> Response:
        """As /v2/health/ready, for this model."""
        one = served(request)
        return _json(
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
        app.router.add_api_route(
            path,
            answered_by_the_middleware,
            methods=["POST"],
            route_class_override=DirectRoute,
            tags=["inference"],
            summary=words,
            description="",
            response_model=None,
            responses={200: {"model": gives}, **ERRORS},
            openapi_extra=openapi_body(takes),
        )
