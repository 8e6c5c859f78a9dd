"""uvicorn with Headroom's protocol for each connection, without its signal handlers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn

from headroom_server.process import BACKLOG
from headroom_server.settings import Settings
from headroom_server.web.connections.http_options import HttpOptions, plain_refusal
from headroom_server.web.connections.http_protocol import BoundedProtocol
from headroom_server.web.connections.socket_reads import SocketReads
from headroom_server.web.inference.direct import FastPath
from headroom_server.web.shared_bound import SharedBound

if TYPE_CHECKING:
    from starlette.types import ASGIApp


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


def http_options(
    settings: Settings,
    receiving: SharedBound,
    direct: FastPath | None = None,
    refusal: Callable[[int, str], bytes] = plain_refusal,
) -> HttpOptions:
    """Return the options of all connections."""
    return HttpOptions(
        settings.connection_max_age_s,
        settings.receive_timeout_s,
        direct,
        receiving=receiving,
        connections=SharedBound(settings.max_connections),
        sending=SharedBound(receiving.most),
        refusal=refusal,
    )


def uvicorn_config(
    application: ASGIApp, options: HttpOptions, settings: Settings
) -> uvicorn.Config:
    """Return what uvicorn is configured with."""
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


def _connection(options: HttpOptions, **arguments: Any) -> SocketReads:
    return SocketReads(BoundedProtocol(options, **arguments), options.reads)
