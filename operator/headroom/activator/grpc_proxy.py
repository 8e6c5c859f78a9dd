"""Holds gRPC calls until a replica is warm, then forwards them message by message.

`HoldingProxy` recognizes an HTTP/2 connection and pipes its bytes to a gRPC server for that
service, on an abstract Unix socket of this process, so the gRPC library handles pings, flow control
and trailers. No message of a call is read before the call is dispatched: its sender waits for the
flow-control window.

A call that a replica refuses returns to the queue, as an HTTP request does, and its messages are
replayed. A call that cannot be held gets UNAVAILABLE (RESOURCE_EXHAUSTED above the bounds) with
`grpc-retry-pushback-ms` set to the rest of the cold start, so that gRPC's own retries return then.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import grpc
import grpc.aio

from headroom.activator.dispatcher import Dispatcher
from headroom.activator.grpc_attempt import CallEnd, forward, passed_metadata
from headroom.activator.held_request import (
    HEAD_BYTES,
    HeldRequest,
    Refusal,
    RefusalReason,
    namespace_of,
)
from headroom.activator.metrics import Metrics
from headroom.activator.replayable_stream import ReplayableStream
from headroom.activator.replica_channels import WINDOWS, ReplicaChannels
from headroom.activator.request_buffer import RequestBuffer
from headroom.fair_slots import FairSlots
from headroom.gateway.activator_messages import Served
from headroom.gateway.retries import IDEMPOTENT, NO_RETRY
from headroom.gateway.values import Endpoint

PUSHBACK = "grpc-retry-pushback-ms"
_OPTIONS = (
    # Gateways ping every ten seconds, even without calls.
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.keepalive_permit_without_calls", 1),
)
MESSAGE_BYTES = 64 << 20
"""Memory of messages that are being read or sent on; a namespace has at most half of it."""
MAX_MESSAGE_BYTES = 16 << 20
"""Largest size of one message, whatever routing.maxBodyBytes is: its size is unknown before it has
arrived."""
_GAVE_WAY = Refusal(
    status=503,
    why=RefusalReason.IDLE,
    message="the call was idle while others waited for memory to send their messages",
    retry_after_s=1,
)


@dataclass(slots=True)
class _ServiceServer:
    """The local gRPC server of one service."""

    served: Served
    server: grpc.aio.Server
    path: str


class GrpcProxy:
    """Holds gRPC calls and forwards them to replicas."""

    def __init__(
        self,
        buffer: RequestBuffer,
        dispatcher: Dispatcher,
        metrics: Metrics,
        on_request: Callable[[str], None],
        inside: set[asyncio.Task[Any]],
    ) -> None:
        """`inside` receives the tasks of calls that are held or being answered."""
        self._buffer = buffer
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._on_request = on_request
        self._inside = inside
        self._servers_by_key: dict[str, _ServiceServer] = {}
        self._numbers = count()
        self.channels = ReplicaChannels()
        self._opening = asyncio.Lock()
        self._messages = FairSlots(MESSAGE_BYTES)

    async def serve(self, services: Mapping[str, Served]) -> None:
        """Set the services by key; stop servers and close channels of what is gone."""
        for key in [key for key in self._servers_by_key if key not in services]:
            await self._servers_by_key.pop(key).server.stop(grace=None)
        for key, place in self._servers_by_key.items():
            place.served = services[key]
        self.channels.keep(
            {_grpc_address(one, at) for one in services.values() for at in one.replicas}
        )

    async def path_for(self, served: Served) -> str:
        """Return the socket path of a service's gRPC server, for `open_unix_connection`."""
        async with self._opening:
            return await self._opened(served)

    async def _opened(self, served: Served) -> str:
        place = self._servers_by_key.get(served.key)
        if place is None:
            # Not by the port: another service may have it once this one was created again.
            name = f"headroom-activator-{os.getpid()}-{next(self._numbers)}"
            most = [("grpc.max_receive_message_length", _largest(served))]
            server = grpc.aio.server(options=[*_OPTIONS, *WINDOWS, *most])
            self._servers_by_key[served.key] = place = _ServiceServer(served, server, f"\0{name}")
            server.add_generic_rpc_handlers((_AnyMethod(self, served.key),))
            server.add_insecure_port(f"unix-abstract:{name}")
            await server.start()
        return place.path

    async def abort(self) -> None:
        """Stop all servers and close all channels."""
        for place in self._servers_by_key.values():
            await place.server.stop(grace=None)
        await self.channels.abort()
        self._servers_by_key.clear()

    async def handle(self, key: str, method: str, said: AsyncIterator[bytes], context: Any) -> None:
        """Hold and forward one call, or refuse it with a retry delay."""
        task = asyncio.current_task()
        assert task is not None
        self._inside.add(task)
        task.add_done_callback(self._inside.discard)
        now_s = asyncio.get_running_loop().time
        admitted = self._buffer.admit(key, now_s(), context.time_remaining())
        self._on_request(key)
        if isinstance(admitted, Refusal):
            await self._refuse(key, context, admitted)
            return
        served = self._servers_by_key[key].served
        stream = ReplayableStream(
            said,
            lambda size: self._buffer.grow(admitted, size, now_s()) is None,
            lambda: self._messages.slot(namespace_of(key), _largest(served)),
            lambda: self._messages.crowded,
        )
        try:
            outcome = await self._hold(admitted, method, stream, context)
            if isinstance(outcome, Refusal):
                await self._refuse(key, context, outcome)
                return
            context.set_trailing_metadata(passed_metadata(outcome.trailing))
            context.set_code(outcome.code)
            context.set_details(outcome.details)
        except asyncio.CancelledError:
            self._metrics.ended(key, "Left")
            raise
        finally:
            self._dispatcher.end(admitted)
            await stream.end()

    async def _hold(
        self, held: HeldRequest, method: str, stream: ReplayableStream, context: Any
    ) -> CallEnd | Refusal:
        """Wait for a replica and forward the call; retry if no replica started it."""
        now_s = asyncio.get_running_loop().time
        refusal = self._buffer.grow(held, HEAD_BYTES, now_s())
        if refusal is not None:
            return refusal
        self._buffer.complete(held)
        metadata = passed_metadata(context.invocation_metadata())
        once = (IDEMPOTENT, "false") in metadata
        while True:
            outcome = await self._dispatcher.wait(held)
            if isinstance(outcome, Refusal):
                return outcome
            held_s = now_s() - held.arrived_s
            served = self._servers_by_key[held.key].served
            channel = self.channels.to(_grpc_address(served, outcome))
            ended = await forward(self._buffer, held, channel, method, metadata, stream, context)
            if stream.ended_idle:
                return _GAVE_WAY
            if not ended.may_go_back(stream, once=once):
                self._metrics.passed_on(held.key, held_s)
                return ended
            once = once or ended.begun
            self._buffer.put_back(held, now_s())

    async def _refuse(self, key: str, context: Any, refusal: Refusal) -> None:
        self._metrics.ended(key, refusal.why)
        again_s = refusal.retry_after_s
        said = [(NO_RETRY, "true")]
        if again_s is not None:
            said += [(PUSHBACK, str(1000 * again_s)), ("retry-after", str(again_s))]
        busy = refusal.status == 429
        code = grpc.StatusCode.RESOURCE_EXHAUSTED if busy else grpc.StatusCode.UNAVAILABLE
        context.set_trailing_metadata(tuple(said))
        context.set_code(code)
        context.set_details(refusal.message)


class _AnyMethod(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Handles every method, with messages as bytes."""

    def __init__(self, calls: GrpcProxy, key: str) -> None:
        self._proxy = calls
        self._key = key

    def service(self, handler_call_details: Any) -> Any:
        """Return the handler for a call of this method."""
        method = handler_call_details.method

        async def handle(said: AsyncIterator[bytes], context: Any) -> None:
            await self._proxy.handle(self._key, method, said, context)

        return grpc.stream_stream_rpc_method_handler(handle)


def _grpc_address(served: Served, at: Endpoint) -> Endpoint:
    return replace(at, port=served.grpc_port or at.port)


def _largest(served: Served) -> int:
    return min(served.max_body_bytes, MAX_MESSAGE_BYTES)
