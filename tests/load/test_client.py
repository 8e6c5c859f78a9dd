"""The client against real sockets: answers, refusals, silence, stale connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from load.client import Client
from load.outcomes import Outcome

pytestmark = pytest.mark.clock

Connection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
METADATA = {"inputs": [{"name": "x", "datatype": "FP64", "shape": [-1, 2]}]}


async def read_request(reader: asyncio.StreamReader) -> tuple[str, list[float]]:
    """Method and the row asked about; raises IncompleteReadError at the end."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = 0
    for line in head.splitlines():
        if line.startswith("content-length:"):
            length = int(line.partition(":")[2])
    body = await reader.readexactly(length)
    return head.split()[0], json.loads(body)["inputs"][0]["data"] if body else []


def answer(body: object, status: int = 200) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(content)}"
    )
    return f"{head}\r\n\r\n".encode() + content


def total(row: list[float]) -> object:
    return {"outputs": [{"name": "sum", "data": [sum(row)]}]}


@asynccontextmanager
async def serving(
    reply: Callable[[int, int, list[float]], bytes | None], *, timeout_s: float = 5.0
) -> AsyncIterator[Client]:
    """A client of a server that sends `reply(connection, request, row)`, or closes on None."""
    opened = 0

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        connection, opened = opened, opened + 1
        request = 0
        try:
            while True:
                method, row = await read_request(reader)
                found = answer(METADATA) if method == "get" else reply(connection, request, row)
                request += 1
                if found is None:
                    break
                writer.write(found)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    async with server, Client(url, "m", timeout_s=timeout_s, max_connections=10) as client:
        await client.learn_input()  # connection 0, closed afterwards
        yield client


async def test_a_right_answer_on_a_kept_connection() -> None:
    async with serving(lambda _c, _r, row: answer(total(row))) as client:
        assert [(await client.ask(i)).outcome for i in range(3)] == [Outcome.OK] * 3
        assert client.connections == 2


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (answer({"error": "full"}, 429), Outcome.REFUSED),
        (answer({"error": "draining"}, 503), Outcome.REFUSED),
        (answer({"error": "deadline"}, 504), Outcome.EXPIRED),
        (answer({"error": "device"}, 500), Outcome.FAILED),
        (answer(total([1.0, 7.0])), Outcome.WRONG),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{x}", Outcome.WRONG),
        (b"SSH-2.0-OpenSSH\r\n\r\n", Outcome.LOST),
        (b"HTTP/1.1 200 OK\r\n", Outcome.LOST),
        (None, Outcome.LOST),
    ],
)
async def test_what_the_server_does_decides_the_outcome(
    reply: bytes | None, outcome: Outcome
) -> None:
    async with serving(lambda _c, _r, _row: reply, timeout_s=0.5) as client:
        ending = await client.ask(5)
    assert ending.outcome is outcome
    assert not ending.retried


async def test_silence_is_a_loss() -> None:
    async with serving(lambda _c, _r, _row: b"", timeout_s=0.2) as client:
        assert (await client.ask(1)).outcome is Outcome.LOST


async def test_a_stale_connection_is_retried_once_on_a_fresh_one() -> None:
    def close_after_one(connection: int, request: int, row: list[float]) -> bytes | None:
        return None if connection == 1 and request == 1 else answer(total(row))

    async with serving(close_after_one) as client:
        first, second = await client.ask(1), await client.ask(2)
    assert (first.outcome, first.retried) == (Outcome.OK, False)
    assert (second.outcome, second.retried) == (Outcome.OK, True)


async def test_a_retry_that_gets_no_answer_is_a_loss() -> None:
    def only_the_first(connection: int, request: int, row: list[float]) -> bytes | None:
        return answer(total(row)) if (connection, request) == (1, 0) else None

    async with serving(only_the_first) as client:
        await client.ask(1)
        ending = await client.ask(2)
    assert (ending.outcome, ending.retried) == (Outcome.LOST, True)


async def test_request_without_a_listener_is_unreachable() -> None:
    server = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    async with Client(f"http://127.0.0.1:{port}", "m", timeout_s=1, max_connections=1) as client:
        assert (await client.ask(1)).outcome is Outcome.UNREACHABLE
