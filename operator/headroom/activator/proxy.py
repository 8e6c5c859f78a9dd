"""The holding proxy: gateways send requests here while a service has no warm replica.

Each service has a port; each connection carries one request. The proxy reads the whole request,
holds it until it is dispatched, and then pipes bytes to and from the replica, so that streams and
upgrades work as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headroom.activator.byte_pipe import bound_buffers, copy
from headroom.activator.dispatcher import Dispatcher
from headroom.activator.held_request import Bounds, Refusal, RefusalReason, namespace_of
from headroom.activator.http2_heads import Http2Heads
from headroom.activator.http_handler import HttpHandler
from headroom.activator.http_request import PIECE, answer
from headroom.activator.metrics import Metrics
from headroom.activator.request_buffer import RequestBuffer
from headroom.fair_share import FairShare
from headroom.gateway.activator_messages import Served

if TYPE_CHECKING:
    from headroom.activator.grpc_proxy import GrpcProxy

_log = logging.getLogger(__name__)


class HoldingProxy:
    """Accepts requests while a service has no warm replica, and forwards them once it has."""

    def __init__(
        self,
        buffer: RequestBuffer,
        metrics: Metrics,
        on_request: Callable[[str], None],
        bounds: Bounds | None = None,
    ) -> None:
        bounds = bounds or Bounds()
        self._buffer = buffer
        self._connections = FairShare(bounds.connections)
        self._metrics = metrics
        self._on_request = on_request
        self._servers: dict[int, tuple[str, asyncio.Server]] = {}
        self._served: dict[str, Served] = {}
        self._handling: set[asyncio.Task[Any]] = set()
        self._piped: set[asyncio.Task[Any]] = set()
        """HTTP/2 connections, which outlast their calls."""
        self.dispatcher = Dispatcher(buffer)
        self._heads = FairShare(bounds.head_bytes)
        self._http = HttpHandler(
            buffer, self.dispatcher, metrics, on_request, self._pipe_http2, self._heads
        )
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
                    self._accept_for(one.key), None, port, backlog=4096, limit=PIECE
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
            bound_buffers(writer)
            task = asyncio.create_task(self._http.handle(key, reader, writer))
            self._handling.add(task)
            task.add_done_callback(self._handling.discard)
            task.add_done_callback(lambda _: self._connections.give_back(namespace, 1))

        return connection

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
        heads = Http2Heads(self._heads, namespace_of(key))
        first = heads.passed(begun)
        if key not in self._served or first is None:
            return
        answers, calls = await self._grpc.servers.connected(self._served[key])
        calls.write(first)
        upwards = asyncio.create_task(copy(reader, calls, heads.passed))
        try:
            await copy(answers, writer)
        finally:
            upwards.cancel()
            heads.close()
            calls.transport.abort()  # before anything at which this may be cancelled once more
            await asyncio.gather(upwards, return_exceptions=True)
            with suppress(OSError):
                await calls.wait_closed()


_TOO_MANY_CONNECTIONS = Refusal(
    status=503,
    why=RefusalReason.TOO_MANY,
    message="too many connections while no replica is warm",
    retry_after_s=1,
)
