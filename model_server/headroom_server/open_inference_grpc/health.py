"""grpc.health.v1.Health, which the probes of Kubernetes, Envoy and client libraries call.

Names of services: "" and that of the Open Inference Protocol are ready or not, as is "readiness";
"liveness" is whether the process needs no restart, so that one port serves both probes.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import grpc

from headroom_server.errors import RefusedError, UnknownModelError
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.calls import SERVICE, Calls, parsed
from headroom_server.open_inference_grpc.message_reads import MessageReads
from headroom_server.open_inference_grpc.stream_reads import StreamReads

HEALTH = "grpc.health.v1.Health"
READY, LIVE = ("", SERVICE, "readiness"), "liveness"
WATCH_S = 0.2
"""A change is sent within this time."""

Status = pb.HealthCheckResponse


class Probed(Protocol):
    """Anything with a health status."""

    @property
    def live(self) -> bool:
        """Whether no restart is needed; independent of load."""

    @property
    def ready(self) -> bool:
        """Whether it is warm, able to serve, and not draining."""


class HealthCalls:
    """The methods Check and Watch; they are no inference, and are not counted as such."""

    def __init__(self, probed: Probed, reads: MessageReads, streams: StreamReads) -> None:
        self._probed = probed
        self._streams = streams
        self._calls = Calls(reads, streams, lambda _: None)

    def handler(self) -> Any:
        """Handler by which a gRPC server routes calls here."""

        async def watch(_: Any, context: Any) -> None:
            await self._calls.guarded(self._watch, context)

        methods = {
            "Check": self._calls.unary(pb.HealthCheckRequest, self.check),
            "Watch": grpc.stream_stream_rpc_method_handler(watch),
        }
        return grpc.method_handlers_generic_handler(HEALTH, methods)

    async def check(self, request: pb.HealthCheckRequest, _: Any) -> pb.HealthCheckResponse:
        """Return the status of a service now.

        Raises:
            UnknownModelError: there is no service of this name, which is NOT_FOUND.
        """
        status = self._status(request.service)
        if status == Status.SERVICE_UNKNOWN:
            known = ", ".join(repr(name) for name in (*READY, LIVE))
            raise UnknownModelError(f"service must be one of {known}; got {request.service!r:.100}")
        return pb.HealthCheckResponse(status=status)

    async def _watch(self, client: str, context: Any) -> None:
        """Send the status now and when it changes, until the client leaves or the server stops."""
        async with self._calls.reads.message(client, context) as raw:
            service = parsed(pb.HealthCheckRequest, raw).service
        sent = None
        while not self._streams.leaving:
            if (status := self._status(service)) != sent:
                await context.write(pb.HealthCheckResponse(status=status).SerializeToString())
                sent = status
            await asyncio.sleep(WATCH_S)
        raise RefusedError("this replica stops; watch another one", retry_after_s=1)

    def _status(self, service: str) -> pb.HealthCheckResponse.ServingStatus:
        if service != LIVE and service not in READY:
            return Status.SERVICE_UNKNOWN
        well = self._probed.live if service == LIVE else self._probed.ready
        return Status.SERVING if well else Status.NOT_SERVING
