"""Runs uvicorn with an application until a signal or a failure: the exit code."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
import socket
from typing import TYPE_CHECKING

from headroom_server.heap import trim_after_peaks
from headroom_server.process import acceptors
from headroom_server.server.ending import CLOSING_S, drain, fail
from headroom_server.server.served import Served
from headroom_server.server.uvicorn_server import Server, uvicorn_config
from headroom_server.settings import Settings
from headroom_server.web.connections.http_options import HttpOptions

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from headroom_server.open_inference_grpc.server import GrpcServer
    from headroom_server.tracing.open_telemetry import OpenTelemetry


log = logging.getLogger("headroom_server")

WATCH_PERIOD_S = 1.0
TRACES_S = 3.0
"""Maximum time to export the last traces; less if the drain leaves less."""


async def run_server(
    models: Served,
    application: ASGIApp,
    options: HttpOptions,
    settings: Settings,
    listener: socket.socket,
    telemetry: OpenTelemetry | None = None,
    grpc: GrpcServer | None = None,
) -> int:
    """Serve an application until stopped, or until what it serves cannot execute any more.

    Returns:
        The exit code: 0 after a drain that answered every accepted request, else 1; also 1 if a
            device was lost, so that the pod's status shows it.
    """
    loop = asyncio.get_running_loop()
    server = Server(uvicorn_config(application, options, settings))
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    http = asyncio.create_task(server.serve(sockets=acceptors(listener)))
    watch = asyncio.create_task(_watch(models))
    trim = asyncio.create_task(trim_after_peaks(options.receiving, settings.engine))
    stop, failed = asyncio.create_task(stopping.wait()), asyncio.create_task(models.failed())
    await asyncio.wait((http, stop, failed), return_when=asyncio.FIRST_COMPLETED)
    over_s = math.inf
    try:
        if http.done():
            return 1
        if failed.done():
            return await fail(models, server, http, stop)
        over_s = loop.time() + settings.drain_delay_s + settings.drain_grace_s + 2 * CLOSING_S
        return await drain(models, server, http, settings, grpc)
    finally:
        if grpc is not None:
            await grpc.stop(CLOSING_S)
        for task in (stop, failed, watch, trim):
            task.cancel()
        models.stop()
        if telemetry is not None:
            left_s = min(TRACES_S, max(0.0, over_s - loop.time()))
            if not await asyncio.to_thread(telemetry.stop, left_s):
                log.warning("the last traces were not exported within %.1f s", left_s)


async def _watch(models: Served) -> None:
    while True:
        await asyncio.sleep(WATCH_PERIOD_S)
        models.watch()
