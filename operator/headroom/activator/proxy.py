"""The holding proxy: gateways send requests here while a service has no warm replica.

Each service has a port; each connection carries one request. The proxy reads the whole request,
holds it until it is dispatched, and then pipes bytes to and from the replica, so that streams and
upgrades work as well.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from headroom.activator.dispatcher import Dispatcher, Outcome
from headroom.activator.http_request import (
    PIECE,
    Incoming,
    MalformedError,
    answer,
    status_of,
)
from headroom.activator.metrics import Metrics
from headroom.activator.request_buffer import (
    HEAD_BYTES,
    Bounds,
    HeldRequest,
    Refusal,
    RefusalReason,
    RequestBuffer,
    namespace_of,
)
from headroom.fair_share import FairShare
from headroom.gateway.activator_messages import Served
from headroom.gateway.routes import REFUSED
from headroom.gateway.values import Endpoint

if TYPE_CHECKING:
    from headroom.activator.grpc_proxy import GrpcProxy

_log = logging.getLogger(__name__)

SOCKET_BYTES = 1 << 15
"""Of the kernel's buffer of arriving bytes, which may be read at once."""
READ_WITHIN_S = 60.0
"""Deadline for reading a whole request: gateways buffer the body before they forward it."""
CONNECT_WITHIN_S = 0.5
HTTP2 = b"PRI * HTTP/2.0"
STATUS_BYTES = len(b"HTTP/1.1 200 ")
"""Of an answer, until its status is known."""


@dataclass(slots=True, eq=False)
class HeldConnection:
    """One connection whose request is held."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    incoming: Incoming


class HoldingProxy:
    """Accepts requests while a service has no warm replica, and forwards them once it has."""

    def __init__(
        self,
        buffer: RequestBuffer,
        metrics: Metrics,
        on_request: Callable[[str], None],
        host: str = "",
        bounds: Bounds | None = None,
    ) -> None:
        bounds = bounds or Bounds()
        self._buffer = buffer
        self._connections = FairShare(bounds.connections)
        self._heads = FairShare(bounds.head_bytes)
        self._metrics = metrics
        self._on_request = on_request
        self._host = host or None
        self._servers: dict[int, tuple[str, asyncio.Server]] = {}
        self._served: dict[str, Served] = {}
        self._handling: set[asyncio.Task[Any]] = set()
        self._piped: set[asyncio.Task[Any]] = set()
        """HTTP/2 connections, which outlast their calls."""
        self.dispatcher = Dispatcher(buffer)
        self._grpc: GrpcProxy | None = None

    @property
    def listening(self) -> frozenset[int]:
        """Ports that accept requests."""
        return frozenset(self._servers)

    async def abort(self) -> None:
        """Close the ports and drop the remaining requests without an answer."""
        self.close()
        if self._grpc is not None:
            await self._grpc.abort()
        inside = self._handling | self._piped
        for task in inside:
            task.cancel()
        await asyncio.gather(*inside, return_exceptions=True)

    async def wait_idle(self, within_s: float) -> None:
        """Wait until no request is held or being answered, or until the timeout."""
        if self._handling:
            await asyncio.wait(self._handling, timeout=within_s)

    async def serve(self, services: Iterable[Served], *, opens: bool = True) -> None:
        """Set the services: open and close ports, and dispatch requests that can be served now."""
        known = {one.port: one for one in services}
        self._served = {one.key: one for one in known.values()}
        self._buffer.serve(known.values())
        self._metrics.keep(self._served)
        self.dispatcher.dispatch()
        if self._grpc is not None:
            await self._grpc.serve(self._served)
        for port, (key, server) in list(self._servers.items()):
            if port not in known or known[port].key != key:
                server.close()
                del self._servers[port]
        for port, one in known.items():
            if port in self._servers or not opens:
                continue
            try:
                server = await asyncio.start_server(
                    self._accept_for(one.key), self._host, port, backlog=4096, limit=PIECE
                )
            except OSError as error:
                _log.warning("%s: port %d cannot be opened: %s", one.key, port, error)
                continue
            self._servers[port] = (one.key, server)

    def close(self) -> None:
        """Accept no more connections; accepted requests stay."""
        for _, server in self._servers.values():
            server.close()
        self._servers.clear()

    def leave(self) -> None:
        """Refuse all requests that still wait."""
        self._buffer.leave()
        self.dispatcher.dispatch()

    def _accept_for(self, key: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        namespace = namespace_of(key)

        def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if not self._connections.fits(namespace, 1):
                self._metrics.ended(key, RefusalReason.TOO_MANY)
                writer.write(answer(_TOO_MANY_CONNECTIONS))
                writer.close()
                return
            self._connections.take(namespace, 1)
            _bound(writer)
            task = asyncio.create_task(self._handle(key, reader, writer))
            self._handling.add(task)
            task.add_done_callback(self._handling.discard)
            task.add_done_callback(lambda _: self._connections.give_back(namespace, 1))

        return connection

    async def _handle(
        self, key: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
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
                self.dispatcher.end(held)
            writer.close()

    async def _pipe_http2(
        self, key: str, begun: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Pipe an HTTP/2 connection to the gRPC proxy until either side closes it."""
        task = asyncio.current_task()
        assert task is not None
        self._handling.discard(task)
        self._piped.add(task)
        task.add_done_callback(self._piped.discard)
        if self._grpc is None:
            # gRPC takes 20 MB, which an activator without gRPC calls need not hold.
            from headroom.activator.grpc_proxy import GrpcProxy  # noqa: PLC0415

            self._grpc = GrpcProxy(
                self._buffer, self.dispatcher, self._metrics, self._on_request, self._handling
            )
        if key not in self._served:
            return
        path = await self._grpc.path_for(self._served[key])
        answers, calls = await asyncio.open_unix_connection(path)
        calls.write(begun)
        upwards = asyncio.create_task(_copy(reader, calls))
        try:
            await _copy(answers, writer)
        finally:
            upwards.cancel()
            calls.transport.abort()  # before anything at which this may be cancelled once more
            await asyncio.gather(upwards, return_exceptions=True)
            with suppress(OSError):
                await calls.wait_closed()

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
            passed = await self._forward(held, connection, outcome, held_s)
            if passed is _Attempt.ANSWERED:
                return None
            if passed is _Attempt.BROKEN_OFF and (begun or not connection.incoming.may_repeat):
                message = "the replica closed the connection before it answered"
                return Refusal(
                    status=503, why=RefusalReason.FAILED, message=message, retry_after_s=1
                )
            begun = begun or passed is _Attempt.BROKEN_OFF
            self._buffer.put_back(held, loop.time())

    async def _wait_for_dispatch(self, held: HeldRequest, connection: HeldConnection) -> Outcome:
        """Wait for the dispatch; raise ConnectionResetError if the client disconnects first.

        Bytes behind the request, which a pipelining client sends, count towards its size.
        """
        turn = self.dispatcher.wait(held)
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

    async def _forward(
        self, held: HeldRequest, connection: HeldConnection, host: Endpoint, held_s: float
    ) -> _Attempt:
        """Pipe the client to a replica; raise OSError if the client disconnects."""
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                reader, writer = await asyncio.open_connection(host.address, host.port, limit=PIECE)
        except (OSError, TimeoutError):
            return _Attempt.NOT_BEGUN
        _bound(writer)
        upwards = asyncio.create_task(_send(connection, held_s, writer))
        try:
            data = await _first(reader)
            if connection.reader.at_eof():
                raise ConnectionResetError("the client disconnected")
            status = status_of(data)
            if status in REFUSED:
                return _Attempt.NOT_BEGUN
            if status is None:
                return _Attempt.BROKEN_OFF
            self._buffer.answered(held)
            self._metrics.passed_on(held.key, held_s)
            await _answer(data, reader, connection.writer)
            return _Attempt.ANSWERED
        finally:
            upwards.cancel()
            writer.close()
            await asyncio.gather(upwards, return_exceptions=True)

    async def _refuse(self, key: str, writer: asyncio.StreamWriter, refusal: Refusal) -> None:
        self._metrics.ended(key, refusal.why)
        with suppress(OSError):
            writer.write(answer(refusal))
            await writer.drain()


class _Attempt(Enum):
    """The outcome of one attempt."""

    ANSWERED = auto()
    NOT_BEGUN = auto()
    """The replica refused the request or was unreachable."""
    BROKEN_OFF = auto()
    """The replica may have started the request."""


async def _first(reader: asyncio.StreamReader) -> bytes:
    """Read the start of an answer; less than its status if the replica closes the connection."""
    data = b""
    with suppress(OSError):
        while len(data) < STATUS_BYTES and (more := await reader.read(PIECE)):
            data += more
    return data


async def _answer(data: bytes, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
    """Copy an answer that begins with `data`; one that breaks off does not end as a whole one."""
    while data:
        client.write(data)
        await client.drain()
        try:
            data = await reader.read(PIECE)
        except OSError:
            _reset(client)
            raise


async def _send(connection: HeldConnection, held_s: float, writer: asyncio.StreamWriter) -> None:
    """Send the held request, then what follows; end it when the client has left."""
    sending = asyncio.create_task(_send_held(connection.incoming, held_s, writer))
    later = asyncio.create_task(connection.reader.read(PIECE))
    try:
        await asyncio.wait({sending, later}, return_when=asyncio.FIRST_COMPLETED)
        if later.done() and not later.result():
            writer.transport.abort()  # a replica that does not read would keep the request
            return
        await sending
        if data := await later:
            writer.write(data)
            await writer.drain()
            await _copy(connection.reader, writer)
        else:
            writer.close()
    finally:
        sending.cancel()
        later.cancel()
        await asyncio.gather(sending, later, return_exceptions=True)


async def _send_held(incoming: Incoming, held_s: float, writer: asyncio.StreamWriter) -> None:
    """Send a request in pieces, without a second copy of its body."""
    writer.write(incoming.forwarded_head(held_s))
    for piece in incoming.pieces:
        writer.write(bytes(piece))
        await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection with an error: an end would be that of the answer."""
    sent = writer.get_extra_info("socket")
    sent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _bound(writer: asyncio.StreamWriter) -> None:
    """Bound what waits in both directions of a connection."""
    writer.transport.set_write_buffer_limits(high=PIECE)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)


_TOO_MANY_CONNECTIONS = Refusal(
    status=503,
    why=RefusalReason.TOO_MANY,
    message="too many connections while no replica is warm",
    retry_after_s=1,
)
_TOO_MANY_HEADS = Refusal(
    status=429,
    why=RefusalReason.TOO_MANY,
    message=f"too many requests with heads of up to {HEAD_BYTES} bytes are arriving",
    retry_after_s=1,
)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until the reader ends, then close the writer."""
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()
    writer.close()
