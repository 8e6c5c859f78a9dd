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
from headroom.activator.held_request import (
    HEAD_BYTES,
    HeldRequest,
    Refusal,
    RefusalReason,
    namespace_of,
)
from headroom.activator.metrics import Metrics
from headroom.activator.replayable_stream import ReplayableStream
from headroom.activator.request_buffer import RequestBuffer
from headroom.fair_slots import FairSlots
from headroom.gateway.activator_messages import Served
from headroom.gateway.routes import IDEMPOTENT, NO_RETRY
from headroom.gateway.values import Endpoint

PUSHBACK = "grpc-retry-pushback-ms"
_OPTIONS = (
    # Gateways ping every ten seconds, even without calls.
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.keepalive_permit_without_calls", 1),
)
_TO_REPLICAS = (
    # An unreachable replica is retried as soon as the next call is dispatched.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)
CONNECT_WITHIN_S = 0.5
LAST_CALL_S = 900.0
"""A replica that is gone from the list may still drain: its calls have the longest deadline."""
MESSAGE_BYTES = 64 << 20
"""Memory of messages that are being read or sent on; a namespace has at most half of it."""
MAX_MESSAGE_BYTES = 16 << 20
"""Largest size of one message, whatever routing.maxBodyBytes is: its size is unknown before it has
arrived."""
_WINDOWS = (
    # What a caller, or a replica, may send before it is read.
    ("grpc.http2.lookahead_bytes", 1 << 14),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.max_concurrent_streams", 1024),
)
_OWN = ("grpc-", "user-agent", ":")
"""Prefixes of metadata that belongs to one connection and is not forwarded."""


@dataclass(frozen=True, slots=True)
class _CallEnd:
    """How one attempt ended."""

    code: grpc.StatusCode
    details: str = ""
    trailing: Any = ()
    answered: bool = False
    """Whether the caller has received part of the answer."""
    begun: bool = True
    """Whether the replica may have started the call."""

    def may_go_back(self, stream: ReplayableStream, *, once: bool) -> bool:
        """Whether another replica may run the call; with `once`, only if none has started it."""
        if self.answered or not stream.repeatable:
            return False
        return not self.begun or (self.code is grpc.StatusCode.UNAVAILABLE and not once)


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
        self._channels: dict[Endpoint, grpc.aio.Channel] = {}
        self._closing: set[asyncio.Task[None]] = set()
        """Channels to replicas that are gone, until their last call has ended."""
        self._opening = asyncio.Lock()
        self._messages = FairSlots(MESSAGE_BYTES)

    async def serve(self, services: Mapping[str, Served]) -> None:
        """Set the services by key; stop servers and close channels of what is gone."""
        for key in [key for key in self._servers_by_key if key not in services]:
            await self._servers_by_key.pop(key).server.stop(grace=None)
        for key, place in self._servers_by_key.items():
            place.served = services[key]
        known = {_grpc_address(one, at) for one in services.values() for at in one.replicas}
        for at in [at for at in self._channels if at not in known]:
            closing = asyncio.create_task(self._channels.pop(at).close(grace=LAST_CALL_S))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    @property
    def channels(self) -> int:
        """Channels to replicas that are in use."""
        return len(self._channels)

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
            server = grpc.aio.server(options=[*_OPTIONS, *_WINDOWS, *most])
            self._servers_by_key[served.key] = place = _ServiceServer(served, server, f"\0{name}")
            server.add_generic_rpc_handlers((_AnyMethod(self, served.key),))
            server.add_insecure_port(f"unix-abstract:{name}")
            await server.start()
        return place.path

    async def abort(self) -> None:
        """Stop all servers and close all channels."""
        for place in self._servers_by_key.values():
            await place.server.stop(grace=None)
        for closing in self._closing:
            closing.cancel()
        for channel in self._channels.values():
            await channel.close()
        self._servers_by_key.clear()
        self._channels.clear()

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
            context.set_trailing_metadata(_passed(outcome.trailing))
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
    ) -> _CallEnd | Refusal:
        """Wait for a replica and forward the call; retry if no replica started it."""
        now_s = asyncio.get_running_loop().time
        refusal = self._buffer.grow(held, HEAD_BYTES, now_s())
        if refusal is not None:
            return refusal
        self._buffer.complete(held)
        metadata = _passed(context.invocation_metadata())
        once = (IDEMPOTENT, "false") in metadata
        while True:
            outcome = await self._dispatcher.wait(held)
            if isinstance(outcome, Refusal):
                return outcome
            held_s = now_s() - held.arrived_s
            ended = await self._forward(held, outcome, method, metadata, stream, context)
            if stream.gave_way:
                return _GAVE_WAY
            if not ended.may_go_back(stream, once=once):
                self._metrics.passed_on(held.key, held_s)
                return ended
            once = once or ended.begun
            self._buffer.put_back(held, now_s())

    async def _forward(
        self,
        held: HeldRequest,
        at: Endpoint,
        method: str,
        metadata: tuple[tuple[str, str | bytes], ...],
        stream: ReplayableStream,
        context: Any,
    ) -> _CallEnd:
        """Forward a call to a replica and stream its answer back."""
        served = self._servers_by_key[held.key].served
        channel = self.channel(_grpc_address(served, at))
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                await channel.channel_ready()
        except (TimeoutError, grpc.aio.UsageError):  # or its channel was closed meanwhile
            said = "no replica could be reached"
            return _CallEnd(grpc.StatusCode.UNAVAILABLE, said, begun=False)
        call = channel.stream_stream(method)(
            stream.replay(), metadata=metadata, timeout=context.time_remaining()
        )
        answered = False
        try:
            begun = await call.initial_metadata()
            if begun is not None and len(begun):
                stream.begun()
                answered = True
                await context.send_initial_metadata(_passed(begun))
            async for message in call:
                stream.begun()
                answered = True
                self._buffer.answered(held)
                await context.write(message)
            code, details = await call.code(), await call.details()
        except grpc.aio.AioRpcError as error:
            code, details = error.code(), error.details() or ""
        finally:
            call.cancel()
        refused = code is grpc.StatusCode.RESOURCE_EXHAUSTED
        trailing = await call.trailing_metadata()
        return _CallEnd(code, details, trailing, answered=answered, begun=not refused)

    def channel(self, at: Endpoint) -> grpc.aio.Channel:
        """Return the channel to a replica, which is kept while the replica is listed."""
        if at not in self._channels:
            host = f"[{at.address}]" if ":" in at.address else at.address
            self._channels[at] = grpc.aio.insecure_channel(
                f"{host}:{at.port}", options=[*_TO_REPLICAS, *_WINDOWS]
            )
        return self._channels[at]

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


def _passed(metadata: Any) -> tuple[tuple[str, str | bytes], ...]:
    """Return the metadata of the call without that of the connection."""
    pairs = ((str(key), value) for key, value in metadata or ())
    return tuple((key, value) for key, value in pairs if not key.startswith(_OWN))
