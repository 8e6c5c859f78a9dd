"""Holds one HTTP request per connection until a replica can answer it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from headroom.activator.dispatcher import Dispatcher, Outcome
from headroom.activator.forwarding import Attempt, HeldConnection, forward
from headroom.activator.held_request import (
    HEAD_BYTES,
    HeldRequest,
    Refusal,
    RefusalReason,
    namespace_of,
)
from headroom.activator.http_request import PIECE, Incoming, MalformedError, answer
from headroom.activator.metrics import Metrics
from headroom.activator.request_buffer import RequestBuffer
from headroom.fair_share import FairShare

READ_WITHIN_S = 60.0
"""Deadline for reading a whole request: gateways buffer the body before they forward it."""
HTTP2 = b"PRI * HTTP/2.0"

PipeHttp2 = Callable[[str, bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Serves an HTTP/2 connection: the service's key, the first bytes, and both directions."""


class HttpHandler:
    """Reads the request of a connection, holds it, and forwards it to a replica."""

    def __init__(
        self,
        buffer: RequestBuffer,
        dispatcher: Dispatcher,
        metrics: Metrics,
        on_request: Callable[[str], None],
        pipe_http2: PipeHttp2,
        heads: FairShare,
    ) -> None:
        """`heads` bounds the request heads that arrive at the same time."""
        self._buffer = buffer
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._on_request = on_request
        self._pipe_http2 = pipe_http2
        self._heads = heads

    async def handle(
        self, key: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the request of a connection, and close it."""
        held: HeldRequest | None = None
        incoming = Incoming()
        loop = asyncio.get_running_loop()
        try:
            other = await self._head(key, reader, incoming)
            if isinstance(other, Refusal):
                await self._refuse(key, writer, other)
                return
            if other is not None:
                await self._pipe_http2(key, other, reader, writer)
                return
            admitted = self._buffer.admit(key, loop.time(), incoming.timeout_s)
            self._on_request(key)
            if isinstance(admitted, HeldRequest):
                held = admitted
                refusal = await self._collect(reader, incoming, held)
                if refusal is None:
                    connection = HeldConnection(reader, writer, incoming)
                    refusal = await self._hold(held, connection)
            else:
                refusal = admitted
            if refusal is not None:
                await self._refuse(key, writer, refusal)
        except MalformedError as error:
            refusal = Refusal(status=400, why=RefusalReason.MALFORMED, message=str(error))
            await self._refuse(key, writer, refusal)
        except (OSError, TimeoutError):
            self._metrics.ended(key, "Left")
        finally:
            incoming.drop()
            if held is not None:
                self._dispatcher.end(held)
            writer.close()

    async def _head(
        self, key: str, reader: asyncio.StreamReader, incoming: Incoming
    ) -> bytes | Refusal | None:
        """Read a request at least to the end of its headers; return the first bytes of HTTP/2."""
        namespace = namespace_of(key)
        taken = 0
        try:
            async with asyncio.timeout(READ_WITHIN_S):
                while not incoming.head:
                    data = await reader.read(PIECE)
                    if not data:
                        raise ConnectionResetError("the client sent no request")
                    if data.startswith(HTTP2):
                        return data
                    if not self._heads.fits(namespace, len(data)):
                        return _TOO_MANY_HEADS
                    self._heads.take(namespace, len(data))
                    taken += len(data)
                    incoming.feed(data)
            return None
        finally:
            self._heads.give_back(namespace, taken)

    async def _collect(
        self, reader: asyncio.StreamReader, incoming: Incoming, held: HeldRequest
    ) -> Refusal | None:
        """Read the whole request; return the refusal if it is too large."""
        loop = asyncio.get_running_loop()
        size = incoming.size
        async with asyncio.timeout(READ_WITHIN_S):
            while True:
                refusal = self._buffer.grow(held, size, loop.time())
                if refusal is not None or incoming.complete:
                    return refusal
                data = await reader.read(PIECE)
                if not data:
                    raise ConnectionResetError(
                        "the client closed the connection within the request"
                    )
                incoming.feed(data)
                size = len(data)

    async def _hold(self, held: HeldRequest, connection: HeldConnection) -> Refusal | None:
        """Wait for a replica and forward the request; retry if no replica started it."""
        loop = asyncio.get_running_loop()
        self._buffer.complete(held)
        begun = False
        while True:
            outcome = await self._wait_for_dispatch(held, connection)
            if isinstance(outcome, Refusal):
                return outcome
            held_s = loop.time() - held.arrived_s
            on_answer = partial(self._on_answer, held, held_s)
            passed = await forward(connection, outcome, held_s, on_answer)
            if passed is Attempt.ANSWERED:
                return None
            if passed is Attempt.BROKEN_OFF and (begun or not connection.incoming.may_repeat):
                message = "the replica closed the connection before it answered"
                return Refusal(
                    status=503, why=RefusalReason.FAILED, message=message, retry_after_s=1
                )
            begun = begun or passed is Attempt.BROKEN_OFF
            self._buffer.put_back(held, loop.time())

    async def _wait_for_dispatch(self, held: HeldRequest, connection: HeldConnection) -> Outcome:
        """Wait for the dispatch; raise ConnectionResetError if the client disconnects first.

        Bytes behind the request, which a pipelining client sends, count towards its size.
        """
        turn = self._dispatcher.wait(held)
        more = asyncio.create_task(connection.reader.read(PIECE))
        try:
            while True:
                either: set[asyncio.Future[Any]] = {more, turn}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if not more.done():
                    return turn.result()
                if not more.result():
                    raise ConnectionResetError("the client disconnected")
                loop = asyncio.get_running_loop()
                refusal = self._buffer.grow(held, len(more.result()), loop.time())
                if refusal is not None:
                    return refusal
                connection.incoming.add(more.result())
                more = asyncio.create_task(connection.reader.read(PIECE))
        finally:
            more.cancel()
            await asyncio.gather(more, return_exceptions=True)

    def _on_answer(self, held: HeldRequest, held_s: float) -> None:
        self._buffer.answered(held)
        self._metrics.passed_on(held.key, held_s)

    async def _refuse(self, key: str, writer: asyncio.StreamWriter, refusal: Refusal) -> None:
        self._metrics.ended(key, refusal.why)
        with suppress(OSError):
            writer.write(answer(refusal))
            await writer.drain()


_TOO_MANY_HEADS = Refusal(
    status=429,
    why=RefusalReason.TOO_MANY,
    message=f"too many requests whose headers take up to {HEAD_BYTES} bytes are arriving",
    retry_after_s=1,
)
