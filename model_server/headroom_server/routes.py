"""The routes: each parses, calls the runner, renders. FastAPI describes them at /docs.

The inference routes take the raw request: their bodies are parsed by orjson and checked against the
schemas and the model's signature, which costs a fraction of FastAPI's own way and gives messages
that name field and rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response

from headroom_server import __version__, protocols
from headroom_server.edge import read_body, until_disconnected
from headroom_server.engine import Work
from headroom_server.errors import (
    InvalidRequestError,
    RefusedError,
    RequestError,
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

TIMEOUT_HEADER = b"x-request-timeout"
"""Seconds, from arrival, after which the client no longer wants an answer."""

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "Bad input; it cost no batch."},
    404: {"model": ErrorBody, "description": "Another model."},
    413: {"model": ErrorBody, "description": "Too many bytes or items."},
    429: {"model": ErrorBody, "description": "Too much waits; see Retry-After."},
    500: {"model": ErrorBody, "description": "The device failed."},
    503: {"model": ErrorBody, "description": "Not ready, or stopping."},
    504: {"model": ErrorBody, "description": f"{TIMEOUT_HEADER.decode()} passed while it waited."},
}


def add_routes(app: FastAPI, runner: Runner, max_body_bytes: int) -> None:
    """All routes, on the application itself: a router of their own costs CPU per request."""
    _inference(app, runner, max_body_bytes)
    _health(app, runner)
    _metadata(app, runner)


def error_answer(error: RequestError) -> Response:
    """The answer to a request that failed."""
    headers = {"content-type": "application/json"}
    if isinstance(error, RefusedError):
        headers["retry-after"] = str(error.retry_after_s)
    return Response(orjson.dumps({"error": error.message}), error.status, headers)


def _json(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


def _health(app: FastAPI, runner: Runner) -> None:
    @app.get("/v2/health/live", tags=["health"], response_model=None)
    async def live() -> Response:
        """Whether the process can serve at all; independent of load."""
        return _json({"live": runner.live}, 200 if runner.live else 503)

    @app.get("/v2/health/ready", tags=["health"], response_model=None)
    async def ready() -> Response:
        """Whether the model is warm: the phase, the seconds per phase, the self-test."""
        return _json(_readiness(runner), 200 if runner.ready else 503)

    @app.get("/metrics", tags=["health"], response_model=None)
    async def metrics() -> Response:
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
    @app.get("/v2", tags=["v2"], response_model=None)
    async def server() -> Response:
        """The server."""
        return _json({"name": "headroom", "version": __version__, "extensions": []})

    @app.get("/v2/models/{model}", tags=["v2"], response_model=None, responses=ERRORS)
    async def metadata(model: str) -> Response:
        """What the model takes and gives."""
        _check_model(runner, model)
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

    @app.get("/v2/models/{model}/ready", tags=["v2"], response_model=None, responses=ERRORS)
    async def model_ready(model: str) -> Response:
        """As /v2/health/ready, for this model."""
        _check_model(runner, model)
        return _json({"name": runner.model, "ready": runner.ready}, 200 if runner.ready else 503)


def _inference(app: FastAPI, runner: Runner, max_body_bytes: int) -> None:
    @app.post(
        "/v2/models/{model}/infer",
        tags=["v2"],
        response_model=None,
        responses={200: {"model": InferResponse}, **ERRORS},
        openapi_extra=openapi_body(InferRequest),
    )
    async def infer(request: Request) -> Response:
        """Open Inference Protocol v2, JSON tensors. A request of n items takes n rows."""
        arrived_s = runner.clock()
        body = await _accept(request, runner, max_body_bytes)
        signature = _signature(runner)
        work, request_id, wanted = protocols.parse_infer(
            body, signature, runner.limits.max_batch_size
        )
        outputs = await _execute(request, runner, work, arrived_s)
        answer = protocols.render_infer(
            runner.model, signature, work.items, outputs, request_id=request_id, wanted=wanted
        )
        return Response(answer, media_type="application/json")

    @app.post(
        "/v1/models/{model}:predict",
        tags=["v1"],
        response_model=None,
        responses={200: {"model": PredictResponse}, **ERRORS},
        openapi_extra=openapi_body(PredictRequest),
    )
    async def predict(request: Request) -> Response:
        """Typed JSON: one prediction per instance, in order."""
        arrived_s = runner.clock()
        body = await _accept(request, runner, max_body_bytes)
        signature = _signature(runner)
        work = protocols.parse_predict(body, signature, runner.limits.max_batch_size)
        outputs = await _execute(request, runner, work, arrived_s)
        answer = protocols.render_predict(signature, work.items, outputs)
        return Response(answer, media_type="application/json")


async def _accept(request: Request, runner: Runner, max_body_bytes: int) -> bytes:
    _check_model(runner, request.path_params["model"])
    body = await read_body(request.scope, request.receive, max_body_bytes)
    if runner.signature is None:
        runner.refuse_unready()
    return body


async def _execute(
    request: Request, runner: Runner, work: Work, arrived_s: float
) -> Mapping[str, Numbers]:
    timeout_s = _timeout_s(request)
    return await runner.infer(
        work,
        arrived_s=arrived_s,
        deadline_s=None if timeout_s is None else arrived_s + timeout_s,
        disconnected=until_disconnected(request.receive),
    )


def _timeout_s(request: Request) -> float | None:
    for name, value in request.scope["headers"]:
        if name == TIMEOUT_HEADER:
            try:
                seconds = float(value)
            except ValueError:
                seconds = math.nan
            if not 0.0 < seconds <= 86_400.0:
                raise InvalidRequestError(
                    f"{TIMEOUT_HEADER.decode()}: seconds above 0 and at most 86400; got "
                    f"{value.decode('latin-1')!r:.40}"
                )
            return seconds
    return None


def _check_model(runner: Runner, model: str) -> None:
    if model != runner.model:
        raise UnknownModelError(f"this server serves {runner.model!r}; got {model!r:.100}")


def _signature(runner: Runner) -> Signature:
    if runner.signature is None:
        raise RefusedError("this replica is not ready", retry_after_s=1)
    return runner.signature
