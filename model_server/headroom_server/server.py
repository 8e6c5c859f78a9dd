"""Runs uvicorn with the application: signals, the drain, the exit code.

On SIGTERM the server becomes unready at once but accepts requests during the drain delay, because
endpoints take a moment to update. Then it accepts no new connections, finishes accepted requests
within the grace period, and exits with 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import uvicorn

from headroom_server.heap import trim_after_peaks
from headroom_server.process import BACKLOG, acceptors
from headroom_server.runtime.control import Control
from headroom_server.runtime.registry import Models
from headroom_server.runtime.store import ModelStore
from headroom_server.settings import Settings
from headroom_server.web.app import Application
from headroom_server.web.direct import FastPath
from headroom_server.web.http_protocol import BoundedProtocol, HttpOptions
from headroom_server.web.receiving import Shares
from headroom_server.web.socket_reads import SocketReads

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from headroom_server.open_inference_grpc.server import GrpcServer, GrpcServices
    from headroom_server.tracing.open_telemetry import OpenTelemetry

log = logging.getLogger("headroom_server")

LINGER_S = 0.2
"""Time between closing the listener and closing idle connections: late requests are served."""
CLOSING_S = 2.0
"""Time for the last responses to be written after the grace period."""
WATCH_PERIOD_S = 1.0
TRACES_S = 3.0
"""Maximum time to export the last traces; less if the drain leaves less."""


class GrpcAddressError(Exception):
    """gRPC cannot listen where it should."""


class Server(uvicorn.Server):
    """uvicorn without its signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no handlers."""
        yield

    def refuse_connections(self) -> None:
        """Close the listener. Open connections are still served."""
        for listener in self.servers:
            listener.close()

    def abort(self) -> int:
        """Close all connections now and return their number."""
        self.force_exit = True
        connections = list(self.server_state.connections)
        for connection in connections:
            connection.transport.abort()
        return len(connections)


class Served(Protocol):
    """What is served, as its life is seen from here."""

    @property
    def warm(self) -> bool:
        """Whether everything is loaded."""

    @property
    def begun(self) -> bool:
        """Whether something accepts requests, so that there is something to drain."""

    @property
    def impaired(self) -> bool:
        """Whether a device was lost."""

    async def failed(self) -> None:
        """Wait until something cannot execute any more."""

    def drain(self) -> None:
        """Become unready."""

    def close_intake(self) -> None:
        """Refuse new requests from now on."""

    async def wait_idle(self) -> None:
        """Wait until every accepted request has ended."""

    def abandon(self) -> int:
        """Fail every request in flight; return how many."""

    def stop(self) -> None:
        """Ask all device threads to end."""

    def watch(self) -> None:
        """Detect hanging devices."""


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


def http_options(
    settings: Settings, receiving: Shares, direct: FastPath | None = None
) -> HttpOptions:
    """Return the options of all connections."""
    return HttpOptions(
        settings.connection_max_age_s,
        settings.receive_timeout_s,
        direct,
        receiving=receiving,
        connections=Shares(settings.max_connections),
        sending=Shares(receiving.most),
    )


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
    server = Server(_config(application, options, settings))
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
            return await _fail(models, server, http, stop)
        over_s = loop.time() + settings.drain_delay_s + settings.drain_grace_s + 2 * CLOSING_S
        return await _drain(models, server, http, settings, grpc)
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


async def listen_for_grpc(
    handler: Callable[[], GrpcServices],
    settings: Settings,
    telemetry: OpenTelemetry | None,
    receiving: Shares,
    max_message_bytes: int | None = None,
) -> GrpcServer | None:
    """Listen, if it is enabled; `handler` is called only then.

    Raises:
        GrpcAddressError: the address is in use, or not an address of this machine.
    """
    if settings.grpc_port is None:
        return None
    from headroom_server.open_inference_grpc.server import (  # noqa: PLC0415 - 20 MB
        Bounds,
        GrpcServer,
    )

    bounds = Bounds(
        max_message_bytes=min(
            settings.max_body_bytes, max_message_bytes or settings.max_body_bytes
        ),
        max_age_s=settings.connection_max_age_s,
        age_grace_s=settings.drain_grace_s,
        receive_within_s=settings.receive_timeout_s,
        max_connections=settings.max_connections,
    )
    interceptors = []
    if telemetry is not None:
        from headroom_server.tracing.over_grpc import TracedGrpc  # noqa: PLC0415

        interceptors.append(TracedGrpc(telemetry))
    server = GrpcServer(handler(), bounds, interceptors, receiving)
    try:
        port = await server.start(settings.host, settings.grpc_port)
    except OSError as error:
        raise GrpcAddressError(
            f"cannot listen on HEADROOM_GRPC_PORT={settings.grpc_port}: {error}"
        ) from error
    log.info("listening for gRPC on %s, port %d", settings.host, port)
    return server


def _models_handler(models: Models, store: ModelStore, settings: Settings) -> GrpcServices:
    from headroom_server.open_inference_grpc.server import served_models  # noqa: PLC0415

    control = Control(models, store, explicit=settings.model_control == "explicit")
    return served_models(models, control)


async def _drain(
    models: Served,
    server: Server,
    http: asyncio.Task[None],
    settings: Settings,
    grpc: GrpcServer | None,
) -> int:
    was_ready = models.begun
    models.drain()
    if was_ready:
        await asyncio.sleep(settings.drain_delay_s)
        server.refuse_connections()
        await asyncio.sleep(LINGER_S)
    server.should_exit = True  # idle connections end now, the others after their answer
    if grpc is not None:
        grpc.leave(settings.drain_grace_s)
    end_s = asyncio.get_running_loop().time() + settings.drain_grace_s
    try:
        await asyncio.wait_for(models.wait_idle(), settings.drain_grace_s)
        abandoned = 0
    except TimeoutError:
        models.close_intake()
        abandoned = models.abandon()
        log.error("the drain grace period ended; %d accepted requests were not executed", abandoned)
    await _close(server, http, end_s)
    return 1 if abandoned or models.impaired else 0


async def _fail(
    models: Served,
    server: Server,
    http: asyncio.Task[None],
    stop: asyncio.Task[bool],
) -> int:
    # A server that never was ready has nothing to keep: its restart shows in the pod's status. One
    # that was ready stays, neither live nor ready, until the kubelet stops it, so that its last
    # answers and its metrics can still be read.
    if models.warm:
        await stop
    server.should_exit = True  # idle connections end now, the others after their answer
    await _close(server, http, asyncio.get_running_loop().time())
    return 1


async def _close(server: Server, http: asyncio.Task[None], end_s: float) -> None:
    # Requests that are still arriving and responses that are read slowly may finish, but they do
    # not extend the drain beyond its grace period.
    left_s = max(0.0, end_s - asyncio.get_running_loop().time()) + CLOSING_S
    done, _ = await asyncio.wait((http,), timeout=left_s)
    if not done:
        log.warning("closed %d connections that sent or read too slowly", server.abort())
        await asyncio.wait((http,), timeout=CLOSING_S)


async def _watch(models: Served) -> None:
    while True:
        await asyncio.sleep(WATCH_PERIOD_S)
        models.watch()


def _connection(options: HttpOptions, **arguments: Any) -> SocketReads:
    return SocketReads(BoundedProtocol(options, **arguments), options.reads)


def _config(application: ASGIApp, options: HttpOptions, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=partial(_connection, options),  # type: ignore[arg-type]  # it is only called
        lifespan="off",
        ws="none",
        proxy_headers=False,
        access_log=False,
        log_level="error",  # its warnings are one line per bad request
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=math.ceil(settings.connection_idle_s),
    )
