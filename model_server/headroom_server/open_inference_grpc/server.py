"""The gRPC server: limits, maximum age of connections, drain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from grpc import aio

from headroom_server.open_inference_grpc.front import Front
from headroom_server.open_inference_grpc.health import HealthCalls, Probed
from headroom_server.open_inference_grpc.message_reads import MessageReads
from headroom_server.open_inference_grpc.service import Service
from headroom_server.open_inference_grpc.stream_reads import StreamReads
from headroom_server.runtime.control import Control
from headroom_server.runtime.registry import Models
from headroom_server.web.connections.http_refusals import MAX_HEAD_BYTES
from headroom_server.web.shared_bound import SharedBound, receiving_bytes

if TYPE_CHECKING:
    from headroom_server.openai_api.service import GenerationService

MAX_CALLS = 1024
"""Open calls: each holds at most `WINDOW_BYTES` until its message is read, 16 MiB in all."""
WINDOW_BYTES = 16 * 1024
"""Most that a client may send of a call that is not read yet. The rest follows when it is read."""
READ_BYTES = 64 * 1024
"""Size of a connection's read buffer. gRPC's own estimate keeps a megabyte for each connection that
has sent large messages, until it is closed."""
PROBES, PROBED_MESSAGES, PROBE_WITHIN_S = 64, 4, 1.0
"""Open calls of the health service, how many of their messages are read at once, and for how long.
They are apart from others: a server whose clients send slowly must not look dead."""
MAX_STREAMS = 256
"""Open calls of one connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits on clients."""

    max_message_bytes: int
    max_age_s: float
    """Then a connection gets a GOAWAY; gRPC varies this by 10 % in either direction."""
    age_grace_s: float
    """Then the remaining calls of such a connection are cancelled, including incomplete ones."""
    receive_within_s: float = 30.0
    """A call's message must be complete this long after its beginning."""
    max_connections: int = 2048
    """Open connections and, up to `MAX_CALLS`, open calls."""


class Reads(NamedTuple):
    """Ways to read messages, and the bound on the answers of calls that are no streams."""

    first: MessageReads
    streams: StreamReads
    sending: SharedBound


class GrpcServices(NamedTuple):
    """Services that calls are routed to, and the ones that health probes see."""

    make_handler: Callable[[Reads], Any]
    probed: Probed


def served_models(models: Models, control: Control | None = None) -> GrpcServices:
    """Return models that batch."""
    return GrpcServices(lambda reads: Service(models, *reads, control).handler(), models)


def served_text(service: GenerationService) -> GrpcServices:
    """Return a model that generates text."""
    from headroom_server.open_inference_grpc.generation_service import (  # noqa: PLC0415
        TextCalls,
    )

    return GrpcServices(lambda reads: TextCalls(service, *reads).handler(), service.generator)


class GrpcServer:
    """Listens after `start`."""

    def __init__(
        self,
        services: GrpcServices,
        bounds: Bounds,
        interceptors: Sequence[aio.ServerInterceptor] = (),
        receiving: SharedBound | None = None,
    ) -> None:
        """`receiving` counts the bytes that arrive, together with those of HTTP."""
        size = bounds.max_message_bytes
        receiving = receiving or SharedBound(receiving_bytes(size))
        reads = Reads(
            MessageReads(
                SharedBound(min(bounds.max_connections, MAX_CALLS)),
                receiving,
                size,
                bounds.receive_within_s,
            ),
            StreamReads(receiving.most, size),
            SharedBound(receiving.most),
        )
        options = (
            ("grpc.max_receive_message_length", bounds.max_message_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", MAX_HEAD_BYTES),
            ("grpc.absolute_max_metadata_size", MAX_HEAD_BYTES),
            ("grpc.max_connection_age_ms", _ms(bounds.max_age_s)),
            ("grpc.max_connection_age_grace_ms", _ms(bounds.age_grace_s)),
            ("grpc.max_concurrent_streams", MAX_STREAMS),
            ("grpc.max_allowed_incoming_connections", bounds.max_connections),
            ("grpc.http2.lookahead_bytes", WINDOW_BYTES),
            ("grpc.http2.bdp_probe", 0),
            ("grpc.experimental.tcp_max_read_buffer_size", READ_BYTES),
            ("grpc.so_reuseport", 0),
        )
        self._front = Front(SharedBound(bounds.max_connections), receiving)
        self._server = aio.server(options=options, interceptors=interceptors)
        self._leaving: asyncio.Task[None] | None = None
        self._streams = reads.streams
        probes = MessageReads(
            SharedBound(PROBES), SharedBound(PROBED_MESSAGES * size), size, PROBE_WITHIN_S
        )
        health = HealthCalls(services.probed, probes, reads.streams)
        handlers = (services.make_handler(reads), health.handler())
        self._server.add_generic_rpc_handlers(handlers)

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port.

        Raises:
            OSError: the address is in use, or not an address of this machine.
        """
        bound = self._front.bind(host, port)
        self._server.add_insecure_port(f"unix-abstract:{self._front.name}")
        await self._server.start()
        await self._front.listen()
        return bound

    def leave(self, grace_s: float) -> None:
        """Send GOAWAY to every client; current calls get this much time, idle streams none."""
        self._front.close()
        self._streams.leave()
        self._leaving = asyncio.create_task(self._server.stop(grace_s))

    async def stop(self, within_s: float = 0.0) -> None:
        """Close the listener; cancel the calls that are not finished by then."""
        self._front.close()
        if self._leaving is not None:
            await asyncio.wait((self._leaving,), timeout=within_s)
        await self._server.stop(None)


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))
