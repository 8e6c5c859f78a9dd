"""Bytes pass the relay in both directions; the server knows the address of the client."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import pytest
import uvloop

from headroom.adapters.gateways.relay import LOOPBACK, Relay
from headroom.bounded_listener import listening

MIB = 1 << 20


@asynccontextmanager
async def relayed(handle: object, most: int = 4) -> AsyncIterator[tuple[Relay, int]]:
    server = await asyncio.start_server(handle, LOOPBACK, 0)  # type: ignore[arg-type]
    opened = listening(0, LOOPBACK)
    relay = Relay(most)
    passed_on = server.sockets[0].getsockname()[1]
    serving = asyncio.create_task(relay.serve(opened, passed_on))
    async with server:
        try:
            yield relay, opened.getsockname()[1]
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def connected(port: int, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(LOOPBACK, port, local_addr=(address, 0))


async def test_bytes_pass_in_both_directions_and_the_client_is_known() -> None:
    reported: list[str | None] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reported.append(relay.client(writer.get_extra_info("peername")[1]))
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    async with relayed(echo) as (relay, port), asyncio.timeout(30.0):
        for address in ("127.0.0.2", "127.0.0.3"):
            reader, writer = await connected(port, address)
            sent = bytes(range(256)) * (MIB // 256)
            writer.write(sent)
            assert await reader.readexactly(len(sent)) == sent
            writer.close()
            assert await reader.read() == b""
    assert reported == ["127.0.0.2", "127.0.0.3"]


async def test_client_that_does_not_read_holds_the_server_back() -> None:
    written = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        for _ in range(64):
            assert not reader.at_eof()
            writer.write(bytes(MIB))
            await writer.drain()
            written += MIB

    async with relayed(pour) as (_, port):
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        plain.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plain, (LOOPBACK, port))
        before = -1
        while before != written:
            before = written
            await asyncio.sleep(0.3)
        plain.close()
    # the kernel's buffers on the way, which grow, are most of it
    assert written < 32 * MIB


async def test_server_that_is_gone_closes_the_client() -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert not reader.at_eof()
        writer.write(b"bye")
        writer.close()

    async with relayed(leave, most=2) as (relay, port), asyncio.timeout(10.0):
        for _ in range(3):  # more than there are places: each is given back
            reader, writer = await connected(port, "127.0.0.1")
            assert await reader.read() == b"bye"
            writer.close()
            while relay.listener.held:  # noqa: ASYNC110  (there is no event for it)
                await asyncio.sleep(0.05)


async def test_end_of_the_relay_ends_the_connections_that_it_holds() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with asyncio.timeout(30.0):
        async with relayed(silent) as (_, port):
            held = [await connected(port, f"127.0.0.{2 + number}") for number in range(3)]
        for reader, writer in held:
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()


@pytest.mark.parametrize(
    "scenario",
    [
        test_bytes_pass_in_both_directions_and_the_client_is_known,
        test_client_that_does_not_read_holds_the_server_back,
        test_server_that_is_gone_closes_the_client,
    ],
)
def test_the_same_on_uvloop(scenario: Callable[[], Coroutine[None, None, None]]) -> None:
    """The operator runs on uvloop, whose transports are not asyncio's and read once when paused."""
    uvloop.run(scenario())
