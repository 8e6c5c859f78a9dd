"""Bounded pools of connections, against real sockets."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from load.client import RETRY_HEADER, Client
from load.connections import Connections
from load.outcomes import Outcome

pytestmark = pytest.mark.clock

METADATA = {"inputs": [{"name": "x", "datatype": "FP64", "shape": [-1, 1]}]}


@dataclass
class Server:
    """Answers each request, counts them by connection, and how many it had at once."""

    answer_s: float = 0.0
    by_connection: Counter[int] = field(default_factory=Counter)
    headers: list[str] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0
    opened: int = 0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection, self.opened = self.opened, self.opened + 1
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode().lower():
                fields = dict(line.split(": ") for line in head.split("\r\n")[1:] if line)
                length = int(fields.get("content-length", 0))
                body = await reader.readexactly(length)
                writer.write(await self._answer(connection, fields, body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def _answer(self, connection: int, fields: dict[str, str], body: bytes) -> bytes:
        if not body:
            return _written(METADATA)
        self.by_connection[connection] += 1
        self.headers.append(fields.get(RETRY_HEADER, ""))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(self.answer_s)
        self.under_way -= 1
        return _written({"outputs": [{"data": json.loads(body)["inputs"][0]["data"]}]})


def _written(body: object) -> bytes:
    content = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
        len(content),
        content,
    )


@asynccontextmanager
async def asking(server: Server, connections: Connections) -> AsyncIterator[Client]:
    listening = await asyncio.start_server(server.connected, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with (
        listening,
        Client(url, "m", timeout_s=5.0, max_connections=100, connections=connections) as client,
    ):
        await client.learn_input()
        server.opened = 0
        yield client


async def test_a_pool_bounds_requests_under_way_and_never_reopens_a_connection() -> None:
    server = Server(answer_s=0.02)
    async with asking(server, Connections(limit=3)) as client:
        endings = await asyncio.gather(*(client.ask(number) for number in range(12)))
    assert {one.outcome for one in endings} == {Outcome.OK}
    assert server.most_under_way == 3
    assert sorted(server.by_connection.values()) == [4, 4, 4]


async def test_one_request_at_a_time_stays_on_the_connection_that_was_used_last() -> None:
    server = Server()
    async with asking(server, Connections(limit=3)) as client:
        for number in range(5):
            await client.ask(number)
    assert list(server.by_connection.values()) == [5]


@pytest.mark.parametrize(("each", "opened"), [(1, [1] * 6), (2, [2, 2, 2]), (4, [4, 2])])
async def test_a_connection_is_reopened_after_its_requests(each: int, opened: list[int]) -> None:
    server = Server()
    async with asking(server, Connections(limit=1, requests_each=each)) as client:
        for number in range(6):
            assert (await client.ask(number)).outcome is Outcome.OK
    assert list(server.by_connection.values()) == opened


async def test_without_a_bound_each_request_can_have_a_connection_of_its_own() -> None:
    server = Server()
    async with asking(server, Connections(requests_each=1)) as client:
        for number in range(4):
            await client.ask(number)
    assert list(server.by_connection.values()) == [1] * 4


async def test_a_request_that_is_given_up_frees_its_connection() -> None:
    server = Server(answer_s=0.2)
    async with asking(server, Connections(limit=1)) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.ask(1)
        assert (await client.ask(2)).outcome is Outcome.OK
    assert len(server.by_connection) == 2


async def test_a_try_says_how_many_came_before_it_and_a_plain_request_does_not() -> None:
    server = Server()
    async with asking(server, Connections()) as client:
        await client.ask(1)
        await client.attempt(2, 0)
        await client.attempt(2, 1)
    assert server.headers == ["", "0", "1"]


@pytest.mark.parametrize(
    ("limit", "each", "message"),
    [
        (0, 0, "connections must be at least 1; got 0"),
        (4, -1, "must be 0 (never reopened) or more; got -1"),
        (None, 100, "got 100 without one: add --connections"),
    ],
)
def test_impossible_connections_are_refused(limit: int | None, each: int, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Connections(limit=limit, requests_each=each)
