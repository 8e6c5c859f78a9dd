"""The discovery service: one stream per gateway, which sends changes as soon as they are published.

A gateway that is up to date receives nothing, so a restarted operator sends nothing. An operator
that does not lead ends the stream, and the gateway's next connection may reach the leader. Clients
must present a certificate and the gateway's ServiceAccount token; no stream outlives either.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import grpc
import grpc.aio

from headroom.adapters.gateways.relay import LOOPBACK, Relay
from headroom.adapters.gateways.xds_server import messages
from headroom.adapters.gateways.xds_server.encoded_resources import EncodedResources
from headroom.adapters.gateways.xds_server.stream_state import StreamState
from headroom.bounded_listener import listening
from headroom.gateway.snapshot import SEND_ORDER, Snapshot

_log = logging.getLogger(__name__)

ELSEWHERE_AFTER_S = 0.2
STREAM_S = 3600.0
"""Maximum duration of a stream: a new stream authenticates with the current token."""
AT_ONCE = 32
"""Resources per message, so that neither side is busy with one message for long."""
MAX_REQUEST_BYTES = 4 << 20
MAX_CONNECTIONS = 64
"""With those whose handshake is unfinished: 50 KiB each, 3 MiB in all. A gateway has one, and an
address may have as many as are free."""
OPTIONS = (
    # Without this, a second operator on the same port would receive half of the streams.
    ("grpc.so_reuseport", 0),
    ("grpc.max_allowed_incoming_connections", MAX_CONNECTIONS),
    ("grpc.server_handshake_timeout_ms", 5_000),
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    # Gateways ping every ten seconds; the operator pings as well.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)

Authenticate = Callable[[str, str], Awaitable[bool]]
"""Tells whether a bearer token, which an address sent, is a gateway's."""


class Tls(Protocol):
    """The operator's certificate, and the certificates of clients."""

    async def wait(self) -> None:
        """Wait for the first certificate."""
        ...

    def grpc_credentials(self) -> Any:
        """Return the credentials of a server."""
        ...

    def left_s(self, authentication: Mapping[str, Sequence[bytes]], name: str) -> float:
        """Return how long a client's certificate is valid; 0 if it has not this name."""
        ...


class XdsServer:
    """Sends the last published snapshot to all gateways."""

    def __init__(self, authenticate: Authenticate, tls: Tls | None = None, peer: str = "") -> None:
        """Serve gateways with a valid token and, over mutual TLS, a certificate for `peer`."""
        self._authenticate = authenticate
        self._tls = tls
        self._peer = peer
        self._relay = Relay(MAX_CONNECTIONS)
        self._snapshot: Snapshot | None = None
        self._streams: set[asyncio.Event] = set()
        self._encoded = EncodedResources()
        self._on_left: Callable[[], None] = lambda: None

    def listen(self, *, on_left: Callable[[], None]) -> None:
        """Call `on_left` whenever a gateway's stream ends: the gateway may have been killed."""
        self._on_left = on_left

    def publish(self, snapshot: Snapshot) -> None:
        """Send this snapshot from now on."""
        self._snapshot = snapshot
        self._encoded.keep(snapshot.resources)
        self._wake()

    def withdraw(self) -> None:
        """Send nothing more, because another process leads. Gateways keep their configuration."""
        self._snapshot = None
        self._wake()

    async def serve(self, port: int, host: str | None = None) -> None:
        """Serve until cancelled, from the first certificate on. Raises OSError for a taken port."""
        if self._tls is not None:
            await self._tls.wait()
        opened = listening(port, host)
        server = grpc.aio.server(options=OPTIONS)
        handler = grpc.stream_stream_rpc_method_handler(self._stream)
        service, _, method = messages.METHOD.removeprefix("/").partition("/")
        handlers = grpc.method_handlers_generic_handler(service, {method: handler})
        server.add_generic_rpc_handlers((handlers,))
        within = f"{LOOPBACK}:0"
        if self._tls is None:
            passed_on = server.add_insecure_port(within)
        else:
            passed_on = server.add_secure_port(within, self._tls.grpc_credentials())
        await server.start()
        try:
            await self._relay.serve(opened, passed_on)
        finally:
            await server.stop(grace=None)

    def _wake(self) -> None:
        for waiting in self._streams:
            waiting.set()

    async def _stream(self, requests: AsyncIterator[bytes], context: Any) -> None:
        """Serve one gateway until it disconnects or this process stops leading."""
        stream_s = STREAM_S
        if self._tls is not None:
            stream_s = min(stream_s, self._tls.left_s(context.auth_context(), self._peer))
            if stream_s == 0.0:
                await context.abort(
                    grpc.StatusCode.UNAUTHENTICATED,
                    f"a valid certificate with the DNS name {self._peer} is required",
                )
        header = dict(context.invocation_metadata()).get("authorization", "")
        scheme, _, token = str(header).partition(" ")
        peer = self._address(context.peer())
        if scheme != "Bearer" or not await self._authenticate(token, peer):
            await context.abort(
                grpc.StatusCode.UNAUTHENTICATED, "the gateway's ServiceAccount token is required"
            )
        wakeup = asyncio.Event()
        self._streams.add(wakeup)
        state = StreamState()
        receiving = asyncio.create_task(_receive(requests, state, wakeup))
        try:
            async with asyncio.timeout(stream_s):
                while self._snapshot is not None and not receiving.done():
                    wakeup.clear()
                    async for response in self._responses(state):
                        await context.write(response)
                    await wakeup.wait()
        except TimeoutError:
            return
        finally:
            self._streams.discard(wakeup)
            receiving.cancel()
            self._on_left()
        if self._snapshot is None:
            await asyncio.sleep(ELSEWHERE_AFTER_S)
            await context.abort(grpc.StatusCode.UNAVAILABLE, "this operator is not the leader")
        error = receiving.exception()
        if error is not None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    def _address(self, peer: str) -> str:
        """Return the client's address; `peer` is gRPC's text, such as ipv4:127.0.0.1:4000."""
        port = peer.rpartition(":")[2]
        return (self._relay.client(int(port)) if port.isdecimal() else None) or peer

    async def _responses(self, state: StreamState) -> AsyncIterator[bytes]:
        """Yield the messages that a gateway needs, a few resources each.

        A gateway asks for the endpoints of a cluster when it has the cluster, and has no replica
        until they are there. So a listener is sent after them, and its clients find replicas.
        """
        for kind in SEND_ORDER:
            snapshot = self._snapshot
            if snapshot is None:
                return
            published = snapshot.resources[kind]
            versions = {name: one.version for name, one in published.items()}
            leads_to = snapshot.leads_to if kind == "listeners" else {}
            waits = partial(_waits, state, leads_to)
            for part in state.delta(kind, versions, snapshot.keeps, waits).parts(AT_ONCE):
                changed = {name: versions[name] for name in part.changed}
                state.mark_sent(kind, changed, part.removed)
                if kind == "clusters":
                    # A rebuilt cluster waits until its endpoints are sent again.
                    state.resend("endpoints", part.changed)
                bodies = []
                for name in part.changed:
                    body = self._encoded.of(kind, name, published[name])
                    bodies.append((name, versions[name], body))
                    await asyncio.sleep(0)  # some milliseconds each, the first time
                yield messages.answer(kind, bodies, part.removed, nonce=kind)


def _waits(state: StreamState, leads_to: Mapping[str, Iterable[str]], name: str) -> bool:
    """Return whether endpoints that a listener leads to have not been sent."""
    return not all(state.has("endpoints", one) for one in leads_to.get(name, ()))


async def _receive(
    requests: AsyncIterator[bytes], state: StreamState, wakeup: asyncio.Event
) -> None:
    """Receive a gateway's requests until it disconnects. Raises ValueError for a malformed one."""
    refused = ""
    try:
        async for data in requests:
            node, request = messages.read(data)
            if request is None:
                continue
            if request.refused and request.refused != refused:
                _log.error(
                    "gateway %s rejects an update of %s: %.500s",
                    *(node, request.kind, request.refused),
                )
            refused = request.refused or refused
            state.on_request(request)
            wakeup.set()
    finally:
        wakeup.set()
