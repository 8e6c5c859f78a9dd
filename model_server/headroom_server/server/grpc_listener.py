"""Listens for gRPC, if it is enabled."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from headroom_server.settings import Settings
from headroom_server.web.shared_bound import SharedBound

if TYPE_CHECKING:
    from headroom_server.open_inference_grpc.server import GrpcServer, GrpcServices
    from headroom_server.tracing.open_telemetry import OpenTelemetry


log = logging.getLogger("headroom_server")


class GrpcAddressError(Exception):
    """gRPC cannot listen where it should."""


async def listen_for_grpc(
    handler: Callable[[], GrpcServices],
    settings: Settings,
    telemetry: OpenTelemetry | None,
    receiving: SharedBound,
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
