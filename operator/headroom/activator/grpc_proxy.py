"""Holds gRPC calls until a replica is warm, then forwards them message by message.

`HoldingProxy` recognizes an HTTP/2 connection and pipes its bytes to the server of that service
(`grpc_servers.py`). No message of a call is read before the call is dispatched: its sender waits
for the flow-control window.

A call that a replica refuses returns to the queue, as an HTTP request does, and its messages are
replayed. A call that cannot be held gets UNAVAILABLE (RESOURCE_EXHAUSTED above the bounds) with
`grpc-retry-pushback-ms` set to the rest of the cold start, so that gRPC's own retries return then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

import grpc
import grpc.aio

from headroom.activator.dispatcher import Dispatcher
from headroom.activator.grpc_attempt import CallEnd, forward, passed_metadata
from headroom.activator.grpc_servers import GrpcServers, largest_message
from headroom.activator.held_request import (
    HEAD_BYTES,
    HeldRequest,
    Refusal,
    RefusalReason,
    namespace_of,
)
from headroom.activator.metrics import Metrics
from headroom.activator.replayable_stream import ReplayableStream
from headroom.activator.replica_channels import ReplicaChannels
from headroom.activator.request_buffer import RequestBuffer
from headroom.fair_slots import FairSlots
from headroom.gateway.activator_messages import Served
from headroom.gateway.listener.retries import IDEMPOTENT, NO_RETRY
from headroom.gateway.values import Endpoint

PUSHBACK = "grpc-retry-pushback-ms"
MESSAGE_BYTES = 64 << 20
"""Memory of messages that are being read or sent on; a namespace has at most half of it."""
_GAVE_WAY = Refusal(
    status=503,
    why=RefusalReason.IDLE,
    message="the call was idle while others waited for memory to send their messages",
    retry_after_s=1,
)


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
        self.servers = GrpcServers(self.handle)
        self.channels = ReplicaChannels()
        self._messages = FairSlots(MESSAGE_BYTES)

    async def serve(self, services: Mapping[str, Served]) -> None:
        """Set the services by key; stop the servers and close the channels of removed ones."""
        await self.servers.serve(services)
        self.channels.keep(
            {_grpc_address(one, at) for one in services.values() for at in one.replicas}
        )

    async def abort(self) -> None:
        """Stop all servers and close all channels."""
        await self.servers.abort()
        await self.channels.abort()

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
        served = self.servers.served(key)
        stream = ReplayableStream(
            said,
            lambda size: self._buffer.grow(admitted, size, now_s()) is None,
            lambda: self._messages.slot(namespace_of(key), largest_message(served)),
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
            served = self.servers.served(held.key)
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


def _grpc_address(served: Served, at: Endpoint) -> Endpoint:
    return replace(at, port=served.grpc_port or at.port)
