"""Serves models that batch, over HTTP and gRPC."""

from __future__ import annotations

import logging
import socket
from functools import partial
from typing import TYPE_CHECKING

from headroom_server.runtime.control import Control
from headroom_server.runtime.registry import Models
from headroom_server.runtime.store import ModelStore
from headroom_server.server.grpc_listener import GrpcAddressError, listen_for_grpc
from headroom_server.server.running import run_server
from headroom_server.server.uvicorn_server import http_options
from headroom_server.settings import Settings
from headroom_server.web.application.app import Application
from headroom_server.web.inference.direct import FastPath

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from headroom_server.open_inference_grpc.server import GrpcServices
    from headroom_server.tracing.open_telemetry import OpenTelemetry


log = logging.getLogger("headroom_server")


async def serve(
    models: Models,
    store: ModelStore,
    settings: Settings,
    listener: socket.socket,
    telemetry: OpenTelemetry | None = None,
) -> int:
    """Serve models until stopped; they have been started. Return the exit code."""
    application = Application(
        models,
        max_body_bytes=settings.max_body_bytes,
        max_receiving_bytes=settings.max_receiving_bytes,
        store=store,
        explicit=settings.model_control == "explicit",
    )
    traced: ASGIApp = application
    direct: FastPath | None = application.direct()
    if telemetry is not None:
        direct = None  # spans are made around ASGI
        from headroom_server.tracing.over_http import TracedHttp  # noqa: PLC0415

        traced = TracedHttp(application, telemetry)
    try:
        handler = partial(_models_handler, models, store, settings)
        grpc = await listen_for_grpc(handler, settings, telemetry, application.receiving)
    except GrpcAddressError as error:
        log.error("%s", error)
        return 2
    options = http_options(settings, application.receiving, direct)
    return await run_server(models, traced, options, settings, listener, telemetry, grpc)


def _models_handler(models: Models, store: ModelStore, settings: Settings) -> GrpcServices:
    from headroom_server.open_inference_grpc.server import served_models  # noqa: PLC0415

    control = Control(models, store, explicit=settings.model_control == "explicit")
    return served_models(models, control)
