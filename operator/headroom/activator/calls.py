"""Calls of gRPC: held as requests are, then passed to a replica message by message.

The door reads that a connection is HTTP/2 and hands it, byte by byte, to a server of gRPC's own
for that service, on a socket that only this process knows. So pings, windows and trailers are
gRPC's. Nothing of a call's body is read before its turn: the sender waits for its window.

A call that a replica refuses goes back in line, as a request does, and what was said is said again.
One that cannot be held is answered UNAVAILABLE (RESOURCE_EXHAUSTED beyond the bounds) with
`grpc-retry-pushback-ms` from what is left of the start, after which gRPC's own retries come back.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import grpc
import grpc.aio

from headroom.activator.holding import HEAD_BYTES, Holding, Refusal, Ticket
from headroom.activator.metrics import Metrics
from headroom.activator.turns import Turns
from headroom.activator.words import Words
from headroom.gateway.activation import Served
from headroom.gateway.routes import IDEMPOTENT, NOT_TRIED_AGAIN
from headroom.gateway.values import Endpoint

PUSHBACK = "grpc-retry-pushback-ms"
_OPTIONS = (
    # Gateways look every ten seconds whether the connection lives, also while nothing is called.
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.keepalive_permit_without_calls", 1),
)
_TO_REPLICAS = (
    # One that cannot be reached is tried again as soon as somebody's turn is there.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)
CONNECT_WITHIN_S = 0.5
_OWN = ("grpc-", "user-agent", ":")
"""Metadata that belongs to one connection begins so."""


@dataclass(frozen=True, slots=True)
class _End:
    """How a try ended."""

    code: grpc.StatusCode
    details: str = ""
    trailing: Any = ()
    answered: bool = False
    """Whether the caller has heard something of it."""
    begun: bool = True
    """Whether the replica may have begun with it."""

    def may_go_back(self, words: Words, *, once: bool) -> bool:
        """Whether another replica may have it; `once` says that no other may begin with it."""
        if self.answered or not words.repeatable:
            return False
        return not self.begun or (self.code is grpc.StatusCode.UNAVAILABLE and not once)


@dataclass(slots=True)
class _Place:
    """The server of one service."""

    served: Served
    server: grpc.aio.Server
    path: str


class Calls:
    """Holds calls, and passes them on."""

    def __init__(
        self,
        holding: Holding,
        turns: Turns,
        metrics: Metrics,
        knocked: Callable[[str], None],
        inside: set[asyncio.Task[Any]],
    ) -> None:
        """`inside` has the tasks of those who are held or being answered."""
        self._holding = holding
        self._turns = turns
        self._metrics = metrics
        self._knocked = knocked
        self._inside = inside
        self._places: dict[str, _Place] = {}
        self._channels: dict[Endpoint, grpc.aio.Channel] = {}
        self._opening = asyncio.Lock()

    async def serve(self, services: Mapping[str, Served]) -> None:
        """Take in what is served, by its keys; end what is no more."""
        for key in [key for key in self._places if key not in services]:
            await self._places.pop(key).server.stop(grace=None)
        for key, place in self._places.items():
            place.served = services[key]

    async def path_for(self, served: Served) -> str:
        """Give the socket at which a service's calls are taken, for `open_unix_connection`."""
        async with self._opening:
            return await self._opened(served)

    async def _opened(self, served: Served) -> str:
        place = self._places.get(served.key)
        if place is None:
            name = f"headroom-activator-{os.getpid()}-{served.port}"
            most = [("grpc.max_receive_message_length", served.max_body_bytes)]
            server = grpc.aio.server(options=[*_OPTIONS, *most])
            self._places[served.key] = place = _Place(served, server, f"\0{name}")
            server.add_generic_rpc_handlers((_Any(self, served.key),))
            server.add_insecure_port(f"unix-abstract:{name}")
            await server.start()
        return place.path

    async def shut(self) -> None:
        """End all that goes on."""
        for place in self._places.values():
            await place.server.stop(grace=None)
        for channel in self._channels.values():
            await channel.close()
        self._places.clear()
        self._channels.clear()

    async def handle(self, key: str, method: str, said: AsyncIterator[bytes], context: Any) -> None:
        """Hold one call, pass it on, or say when to come back."""
        task = asyncio.current_task()
        assert task is not None
        self._inside.add(task)
        task.add_done_callback(self._inside.discard)
        now_s = asyncio.get_running_loop().time
        admitted = self._holding.admit(key, now_s(), context.time_remaining())
        self._knocked(key)
        if isinstance(admitted, Refusal):
            await self._refuse(key, context, admitted)
            return
        words = Words(said, lambda size: self._holding.grow(admitted, size, now_s()) is None)
        try:
            outcome = await self._stay(admitted, method, words, context)
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
            self._turns.end(admitted)
            await words.end()

    async def _stay(
        self, ticket: Ticket, method: str, words: Words, context: Any
    ) -> _End | Refusal:
        """Wait for a replica and pass the call on, again where it did not begin."""
        now_s = asyncio.get_running_loop().time
        refusal = self._holding.grow(ticket, HEAD_BYTES, now_s())
        if refusal is not None:
            return refusal
        self._holding.complete(ticket)
        metadata = _passed(context.invocation_metadata())
        once = (IDEMPOTENT, "false") in metadata
        while True:
            outcome = await self._turns.wait(ticket)
            if isinstance(outcome, Refusal):
                return outcome
            held_s = now_s() - ticket.arrived_s
            ended = await self._pass_on(ticket, outcome, method, metadata, words, context)
            if not ended.may_go_back(words, once=once):
                self._metrics.passed_on(ticket.key, held_s)
                return ended
            once = once or ended.begun
            self._holding.put_back(ticket, now_s())

    async def _pass_on(
        self,
        ticket: Ticket,
        at: Endpoint,
        method: str,
        metadata: tuple[tuple[str, str | bytes], ...],
        words: Words,
        context: Any,
    ) -> _End:
        """Tie a call to a replica; what the replica says is the answer."""
        served = self._places[ticket.key].served
        channel = self._channel(replace(at, port=served.grpc_port or at.port))
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                await channel.channel_ready()
        except TimeoutError:
            said = "no replica could be reached"
            return _End(grpc.StatusCode.UNAVAILABLE, said, begun=False)
        call = channel.stream_stream(method)(
            words.of_a_try(), metadata=metadata, timeout=context.time_remaining()
        )
        answered = False
        try:
            begun = await call.initial_metadata()
            if begun is not None and len(begun):
                words.begun()
                answered = True
                await context.send_initial_metadata(_passed(begun))
            async for message in call:
                words.begun()
                answered = True
                self._holding.answered(ticket)
                await context.write(message)
            code, details = await call.code(), await call.details()
        except grpc.aio.AioRpcError as error:
            code, details = error.code(), error.details() or ""
        finally:
            call.cancel()
        refused = code is grpc.StatusCode.RESOURCE_EXHAUSTED
        trailing = await call.trailing_metadata()
        return _End(code, details, trailing, answered=answered, begun=not refused)

    def _channel(self, at: Endpoint) -> grpc.aio.Channel:
        if at not in self._channels:
            host = f"[{at.address}]" if ":" in at.address else at.address
            self._channels[at] = grpc.aio.insecure_channel(
                f"{host}:{at.port}", options=_TO_REPLICAS
            )
        return self._channels[at]

    async def _refuse(self, key: str, context: Any, refusal: Refusal) -> None:
        self._metrics.ended(key, refusal.why)
        again_s = refusal.retry_after_s
        said = [(NOT_TRIED_AGAIN, "true")]
        if again_s is not None:
            said += [(PUSHBACK, str(1000 * again_s)), ("retry-after", str(again_s))]
        busy = refusal.status == 429
        code = grpc.StatusCode.RESOURCE_EXHAUSTED if busy else grpc.StatusCode.UNAVAILABLE
        context.set_trailing_metadata(tuple(said))
        context.set_code(code)
        context.set_details(refusal.words)


class _Any(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Takes whatever is called, as bytes."""

    def __init__(self, calls: Calls, key: str) -> None:
        self._calls = calls
        self._key = key

    def service(self, handler_call_details: Any) -> Any:
        """Give what handles a call of this method."""
        method = handler_call_details.method

        async def handle(said: AsyncIterator[bytes], context: Any) -> None:
            await self._calls.handle(self._key, method, said, context)

        return grpc.stream_stream_rpc_method_handler(handle)


def _passed(metadata: Any) -> tuple[tuple[str, str | bytes], ...]:
    """Give the metadata that concerns the call, and not one connection."""
    pairs = ((str(key), value) for key, value in metadata or ())
    return tuple((key, value) for key, value in pairs if not key.startswith(_OWN))
