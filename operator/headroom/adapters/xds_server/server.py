"""One stream for each gateway, on which it is told what has changed, as soon as it has.

Nothing is said to a gateway that has what stands: so an operator that starts anew is silent. One
that does not decide ends the stream, and the gateway's next connection may find the one that does.
Nobody is answered who does not show the gateway's own token.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import grpc
import grpc.aio
import orjson

from headroom.adapters.xds_server import messages
from headroom.adapters.xds_server.knowledge import Knowledge, Lacks
from headroom.gateway.snapshot import TOLD_IN_ORDER, Resource, Snapshot

_log = logging.getLogger(__name__)

ELSEWHERE_AFTER_S = 0.2
STREAM_S = 3600.0
"""After which a gateway begins anew, and shows its token as it is then."""
AT_ONCE = 32
"""Resources in one message: neither side is busy with one for long."""
MAX_QUESTION_BYTES = 4 << 20
OPTIONS = (
    # A second operator on the same port would take half of the streams.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MAX_QUESTION_BYTES),
    # The gateways look every ten seconds whether the operator is there, and it looks for them.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)

Authenticate = Callable[[str], Awaitable[bool]]
"""Whether this bearer token is a gateway's."""


class XdsServer:
    """Tells the gateways the last snapshot that was published."""

    def __init__(self, authenticate: Authenticate) -> None:
        self._authenticate = authenticate
        self._snapshot: Snapshot | None = None
        self._streams: set[asyncio.Event] = set()
        self._encoded: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._on_left: Callable[[], None] = lambda: None

    def listen(self, *, on_left: Callable[[], None]) -> None:
        """Have this called whenever a gateway's stream has ended: it may have been killed."""
        self._on_left = on_left

    def publish(self, snapshot: Snapshot) -> None:
        """Tell this from now on."""
        self._snapshot = snapshot
        for key in [key for key in self._encoded if key[1] not in snapshot.resources[key[0]]]:
            del self._encoded[key]
        self._wake()

    def withdraw(self) -> None:
        """Tell nothing any more: another process decides. What the gateways know stands."""
        self._snapshot = None
        self._wake()

    async def serve(self, port: int, host: str = "[::]") -> None:
        """Serve until cancelled. Raises OSError where the port is taken."""
        server = grpc.aio.server(options=OPTIONS)
        handler = grpc.stream_stream_rpc_method_handler(self._stream)
        service, _, method = messages.METHOD.removeprefix("/").partition("/")
        handlers = grpc.method_handlers_generic_handler(service, {method: handler})
        server.add_generic_rpc_handlers((handlers,))
        try:
            server.add_insecure_port(f"{host}:{port}")
        except RuntimeError as error:
            raise OSError(f"port {port} is taken: {error}") from error
        await server.start()
        try:
            await asyncio.Event().wait()
        finally:
            await server.stop(grace=None)

    def _wake(self) -> None:
        for waiting in self._streams:
            waiting.set()

    async def _stream(self, questions: AsyncIterator[bytes], context: Any) -> None:
        """Answer one gateway until it leaves, or this process does not decide any more."""
        header = dict(context.invocation_metadata()).get("authorization", "")
        scheme, _, token = str(header).partition(" ")
        if scheme != "Bearer" or not await self._authenticate(token):
            await context.abort(
                grpc.StatusCode.UNAUTHENTICATED, "the token of the gateway is needed"
            )
        news = asyncio.Event()
        self._streams.add(news)
        knowledge = Knowledge()
        hearing = asyncio.create_task(_hear(questions, knowledge, news))
        try:
            async with asyncio.timeout(STREAM_S):
                while self._snapshot is not None and not hearing.done():
                    news.clear()
                    async for told in self._told(knowledge):
                        await context.write(told)
                    await news.wait()
        except TimeoutError:
            return
        finally:
            self._streams.discard(news)
            hearing.cancel()
            self._on_left()
        if self._snapshot is None:
            await asyncio.sleep(ELSEWHERE_AFTER_S)
            await context.abort(grpc.StatusCode.UNAVAILABLE, "this operator does not lead")
        error = hearing.exception()
        if error is not None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    async def _told(self, knowledge: Knowledge) -> AsyncIterator[bytes]:
        """Give the messages that a gateway lacks, a few resources each."""
        for kind in TOLD_IN_ORDER:
            snapshot = self._snapshot
            if snapshot is None:
                return
            standing = snapshot.resources[kind]
            versions = {name: one.version for name, one in standing.items()}
            for part in _parts(knowledge.lacks(kind, versions)):
                changed = {name: versions[name] for name in part.changed}
                knowledge.told(kind, changed, part.removed)
                if kind == "clusters":
                    # One that is built anew waits for its replicas to be told again.
                    knowledge.forget("endpoints", part.changed)
                bodies = []
                for name in part.changed:
                    bodies.append((name, versions[name], self._body(kind, name, standing[name])))
                    await asyncio.sleep(0)  # some milliseconds each, the first time
                yield messages.answer(kind, bodies, part.removed, nonce=kind)

    def _body(self, kind: str, name: str, resource: Resource) -> bytes:
        version, body = self._encoded.get((kind, name), ("", b""))
        if version != resource.version:
            body = messages.encode(orjson.loads(resource.body))
            self._encoded[kind, name] = resource.version, body
        return body


async def _hear(questions: AsyncIterator[bytes], knowledge: Knowledge, news: asyncio.Event) -> None:
    """Take in what a gateway asks until it leaves. Raises ValueError for what is no question."""
    refused = ""
    try:
        async for data in questions:
            node, question = messages.read(data)
            if question is None:
                continue
            if question.refused and question.refused != refused:
                _log.error(
                    "gateway %s refuses what it was told of %s: %.500s",
                    *(node, question.kind, question.refused),
                )
            refused = question.refused or refused
            knowledge.hear(question)
            news.set()
    finally:
        news.set()


def _parts(lacks: Lacks) -> Iterator[Lacks]:
    """Cut what is to be told; what is gone goes with the first part."""
    removed: Sequence[str] = lacks.removed
    for begin in range(0, max(len(lacks.changed), 1 if removed else 0), AT_ONCE):
        yield Lacks(
            changed=lacks.changed[begin : begin + AT_ONCE],
            removed=() if begin else tuple(removed),
        )
