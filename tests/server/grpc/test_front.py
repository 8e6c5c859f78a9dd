"""The front of the gRPC port: it bounds what the library would keep, and names each client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import grpc
import pytest
import uvloop
from grpc import aio

from headroom_server.open_inference_grpc.front import Front
from headroom_server.open_inference_grpc.message_reads import client_of
from headroom_server.web.shared_bound import SharedBound
from reliability.attacks.grpc_payloads import METHOD, PREFACE, Kind, frame, headers
from support.server_world import until

pytestmark = pytest.mark.clock

ANY_SIZE = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
LARGE = bytes(5_000_000)
WITHIN_S = 10.0
BOTH_LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
Run = Callable[[Coroutine[Any, Any, None]], None]


class Echo(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Answers every call with its message, and keeps who called."""

    def __init__(self) -> None:
        self.clients: list[str] = []

    def service(self, _: Any) -> Any:
        async def echo(message: bytes, context: Any) -> bytes:
            self.clients.append(client_of(context))
            return message

        return grpc.unary_unary_rpc_method_handler(echo)


class World:
    """A front, and the library behind it."""

    def __init__(self, host: str, connections: int) -> None:
        self.host, self.echo = host, Echo()
        self.receiving = SharedBound(1 << 20)
        self.front = Front(SharedBound(connections), self.receiving)
        self.server = aio.server(options=ANY_SIZE)
        self.server.add_generic_rpc_handlers((self.echo,))
        self.port = self.front.bind(host, 0)

    async def start(self) -> None:
        self.server.add_insecure_port(f"unix-abstract:{self.front.name}")
        await self.server.start()
        await self.front.listen()

    async def call(self, message: bytes) -> bytes:
        address = f"[{self.host}]" if ":" in self.host else self.host
        async with aio.insecure_channel(f"{address}:{self.port}", options=ANY_SIZE) as channel:
            answer: bytes = await channel.unary_unary("/a/b")(message, timeout=WITHIN_S)
        return answer

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.host, self.port)

    async def until_open(self, connections: int) -> None:
        await until(lambda: self.front.connections.held == connections)


@contextlib.asynccontextmanager
async def world(host: str = "127.0.0.1", connections: int = 100) -> AsyncIterator[World]:
    made = World(host, connections)
    await made.start()
    try:
        yield made
    finally:
        made.front.close()
        await made.server.stop(None)


async def ended(reader: asyncio.StreamReader) -> bool:
    """Read until the connection is closed."""
    with contextlib.suppress(ConnectionError):
        await asyncio.wait_for(reader.read(), WITHIN_S)
    return True


@BOTH_LOOPS
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_large_messages_pass_and_calls_have_the_address_of_their_client(
    run: Run, host: str
) -> None:
    async def calls() -> None:
        async with world(host) as made:
            for message in (b"", b"x", LARGE):
                assert await made.call(message) == message
            assert made.echo.clients == [host] * 3
            await made.until_open(0)
            assert made.receiving.held == 0

    run(calls())


@BOTH_LOOPS
def test_connection_whose_head_never_ends_is_closed(run: Run) -> None:
    async def attack() -> None:
        async with world() as made:
            reader, writer = await made.open()
            writer.write(PREFACE + frame(Kind.SETTINGS, 0, 0))
            writer.write(frame(Kind.HEADERS, 0, 1, headers(METHOD)))
            writer.write(frame(Kind.CONTINUATION, 0, 1, bytes(240)) * 100)
            assert await ended(reader)
            writer.close()
            await made.until_open(0)
            assert made.receiving.held == 0
            assert await made.call(b"x") == b"x"

    run(attack())


@BOTH_LOOPS
def test_one_client_takes_half_of_the_connections_at_most(run: Run) -> None:
    async def attack() -> None:
        async with world(connections=4) as made:
            first, second, third = [await made.open() for _ in range(3)]
            assert await ended(third[0])
            first[1].transport.abort()
            await made.until_open(1)
            assert await made.call(b"x") == b"x"
            for _, writer in (second, third):
                writer.transport.abort()
            await made.until_open(0)

    run(attack())


@BOTH_LOOPS
def test_clients_are_refused_once_the_library_has_stopped(run: Run) -> None:
    async def stop() -> None:
        async with world() as made:
            reader, writer = await made.open()
            await made.server.stop(None)
            assert await ended(reader)
            writer.close()
            reader, writer = await made.open()
            assert await ended(reader)
            writer.close()
            await made.until_open(0)

    run(stop())
