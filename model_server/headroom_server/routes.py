"""The routes: each parses, calls the runner, renders. FastAPI describes them at /docs.

The inference routes take the raw request: their bodies are parsed by orjson and checked against the
schemas and the model's signature, which costs a fraction of FastAPI's own way and gives messages
that name field and rule.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from headroom_server import __version__, protocols
from headroom_server.edge import connection_of, read_body
from headroom_server.engine import Work
from headroom_server.errors import (
    InvalidRequestError,
    NotJsonError,
    RefusedError,
    UnknownModelError,
)
from headroom_server.metrics import CONTENT_TYPE, render
from headroom_server.runner import Runner
from headroom_server.schemas import (
    ErrorBody,
    InferRequest,
    InferResponse,
    PredictRequest,
    PredictResponse,
    openapi_body,
)
from headroom_server.tensors import Numbers, Signature
from headroom_server.terms import TIMEOUT, parse_terms

BINARY_HEADER = b"inference-header-content-length"
"""Says that binary tensors follow the JSON."""

JSON = (b"content-type", b"application/json")

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "Bad input; it cost no batch."},
    404: {"model": ErrorBody, "description": "Another model."},
    413: {"model": ErrorBody, "description": "Too many bytes or items."},
    429: {"model": ErrorBody, "description": "Too much waits; see Retry-After."},
    500: {"model": ErrorBody, "description": "The device failed."},
    503: {"model": ErrorBody, "description": "Not ready, or stopping."},
    504: {"model": ErrorBody, "description": f"{TIMEOUT.decode()} passed while it waited."},
}


class JsonAnswer(Response):
    """JSON that is already bytes, without the detour over headers as text."""

    def __init__(self, body: bytes) -> None:
        self.status_code = 200
        self.background = None
        self.body = body
        self.raw_headers = [JSON, (b"content-length", b"%d" % len(body))]


class DirectRoute(APIRoute):
    """A route that FastAPI describes and finds, and whose endpoint gets the request as it is.

    FastAPI's own way to an endpoint (dependencies, exit stacks, a second error layer) costs 80 us
    per request and gives nothing to an endpoint that takes the raw request.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the endpoint, send its response. Errors rise to the edge."""
        if scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        response = await self.endpoint(Request(scope, receive))
        await response(scope, receive, send)


Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


def _get(app: FastAPI, path: str, tag: str) -> Callable[[Endpoint], Endpoint]:
    def add(endpoint: Endpoint) -> Endpoint:
        app.router.add_api_route(
            path,
            endpoint,
            methods=["GET"],
            route_class_override=DirectRoute,
            tags=[tag],
            response_model=None,
        )
        return endpoint

    return add


def add_routes(app: FastAPI, runner: Runner, max_body_bytes: int) -> None:
    """All routes, on the application itself: a router of their own costs CPU per request."""
    _inference(app, runner, max_body_bytes)
    _health(app, runner)
    _metadata(app, runner)


def _json(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


def _health(app: FastAPI, runner: Runner) -> None:
    @_get(app, "/v2/health/live", "health")
    async def live(_: Request) -> Response:
        """Whether the process can serve at all; independent of load."""
        return _json({"live": runner.live}, 200 if runner.live else 503)

    @_get(app, "/v2/health/ready", "health")
    async def ready(_: Request) -> Response:
        """Whether the model is warm: the phase, the seconds per phase, the self-test."""
        return _json(_readiness(runner), 200 if runner.ready else 503)

    @_get(app, "/metrics", "health")
    async def metrics(_: Request) -> Response:
        """Prometheus text, one consistent instant."""
        return Response(render(runner.snapshot()), headers={"content-type": CONTENT_TYPE})


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
        "failure": runner.failure,
    }


def _metadata(app: FastAPI, runner: Runner) -> None:
    @_get(app, "/v2", "v2")
    async def server(_: Request) -> Response:
        """The server."""
        return _json({"name": "headroom", "version": __version__, "extensions": []})

    @_get(app, "/v2/models/{model}", "v2")
    @_get(app, "/v2/models/{model}/versions/{version}", "v2")
    async def metadata(request: Request) -> Response:
        """What the model takes and gives."""
        _check_model(runner, request)
        signature = _signature(runner)
        return _json(
            {
                "name": runner.model,
                "versions": [protocols.VERSION],
                "platform": f"headroom_{runner.engine.name}",
                "inputs": [protocols.describe(spec) for spec in signature.inputs],
                "outputs": [protocols.describe(spec) for spec in signature.outputs],
                "parameters": {
                    "device": runner.engine.device,
                    "emulated": runner.engine.emulated,
                    "max_batch_size": runner.limits.max_batch_size,
                },
            }
        )

    @_get(app, "/v2/models/{model}/ready", "v2")
    @_get(app, "/v2/models/{model}/versions/{version}/ready", "v2")
    async def model_ready(request: Request) -> Response:
        """As /v2/health/ready, for this model."""
        _check_model(runner, request)
        return _json({"name": runner.model, "ready": runner.ready}, 200 if runner.ready else 503)


def _inference(app: FastAPI, runner: Runner, max_body_bytes: int) -> None:
    async def infer(request: Request) -> Response:
        """Open Inference Protocol v2, JSON tensors. A request of n items takes n rows."""
        arrived_s = runner.clock()
        body = await _accept(request, runner, max_body_bytes)
        signature = _signature(runner)
        try:
            work, request_id, wanted = protocols.parse_infer(
                body, signature, runner.limits.max_batch_size
            )
        except NotJsonError as error:
            _refuse_binary(request, error)
            raise
        outputs = await _execute(request, runner, work, arrived_s)
        answer = protocols.render_infer(
            runner.model, signature, work.items, outputs, request_id=request_id, wanted=wanted
        )
        return JsonAnswer(answer)

    async def predict(request: Request) -> Response:
        """Typed JSON: one prediction per instance, in order."""
        arrived_s = runner.clock()
        body = await _accept(request, runner, max_body_bytes)
        signature = _signature(runner)
        work = protocols.parse_predict(body, signature, runner.limits.max_batch_size)
        outputs = await _execute(request, runner, work, arrived_s)
        answer = protocols.render_predict(signature, work.items, outputs)
        return JsonAnswer(answer)

    for path, endpoint, takes, gives in (
        ("/v1/models/{model}:predict", predict, PredictRequest, PredictResponse),
        ("/v2/models/{model}/infer", infer, InferRequest, InferResponse),
        ("/v2/models/{model}/versions/{version}/infer", infer, InferRequest, InferResponse),
    ):
        app.router.add_api_route(
            path,
            endpoint,
            methods=["POST"],
            route_class_override=DirectRoute,
            tags=["inference"],
            response_model=None,
            responses={200: {"model": gives}, **ERRORS},
            openapi_extra=openapi_body(takes),
        )


async def _accept(request: Request, runner: Runner, max_body_bytes: int) -> bytes:
    _check_model(runner, request)
    body = await read_body(request.scope, request.receive, max_body_bytes)
    if runner.signature is None:
        runner.refuse_unready()
    return body


async def _execute(
    request: Request, runner: Runner, work: Work, arrived_s: float
) -> Mapping[str, Numbers]:
    return await runner.infer(
        work,
        arrived_s=arrived_s,
        terms=parse_terms(request.scope["headers"], runner.limits.classes),
        connection=connection_of(request.scope),
    )


def _refuse_binary(request: Request, error: NotJsonError) -> None:
    if any(name == BINARY_HEADER for name, _ in request.scope["headers"]):
        raise InvalidRequestError(
            f"{BINARY_HEADER.decode()}: binary tensors are not served; send `data` as JSON"
        ) from error


def _check_model(runner: Runner, request: Request) -> None:
    model = request.path_params["model"]
    if model != runner.model:
        raise UnknownModelError(f"this server serves {runner.model!r}; got {model!r:.100}")
    version = request.path_params.get("version", protocols.VERSION)
    if version != protocols.VERSION:
        raise UnknownModelError(
            f"{runner.model!r} has version {protocols.VERSION!r}; got {version!r:.100}"
        )


def _signature(runner: Runner) -> Signature:
    if runner.signature is None:
        raise RefusedError("this replica is not ready", retry_after_s=1)
    return runner.signature
