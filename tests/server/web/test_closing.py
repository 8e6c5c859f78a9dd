"""Clients that still send when their answer closes the connection get the answer, not a reset."""

from __future__ import annotations

import asyncio
import http.client
import time

import pytest

from support.server_process import Server, serving

pytestmark = pytest.mark.clock

PATH = "/v1/models/m:predict"
BODY = b" " * 9_000_000
HEAD = b"POST %b HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
GOOD = b'{"instances":[[1,2,3,4]]}'
SMALL = (HEAD % (PATH.encode(), len(GOOD))).replace(b"connection: close\r\n", b"") + GOOD


def status_of(server: Server) -> int:
    """The status that Python's own client reads, which sends its body before it reads."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    try:
        connection.request("POST", PATH, BODY, {"connection": "close"})
        return connection.getresponse().status
    finally:
        connection.close()


async def connected(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))


async def send_on(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


async def test_client_that_sends_its_whole_body_first_reads_why_it_is_refused() -> None:
    async with serving() as server:
        await server.ready()
        found = [await asyncio.to_thread(status_of, server) for _ in range(5)]
        assert found == [413] * 5


async def test_last_answer_comes_once_and_nothing_after_it() -> None:
    async with serving() as server:
        await server.ready()
        reader, writer = await connected(server)
        writer.write(SMALL + HEAD % (PATH.encode(), len(BODY)) + BODY[:100_000])
        answers = await asyncio.wait_for(reader.read(), 10)
        assert [one[:3] for one in answers.split(b"HTTP/1.1 ")[1:]] == [b"200", b"413"]
        writer.write(BODY[:100_000] + SMALL)  # dropped
        await asyncio.wait_for(writer.drain(), 10)
        writer.close()
        await server.shows("requests_total", 1, outcome="ok")


async def test_client_that_does_not_close_is_closed_at_the_end_of_its_time() -> None:
    async with serving(RECEIVE_TIMEOUT_S=0.5) as server:
        await server.ready()
        reader, writer = await connected(server)
        began_s = time.monotonic()
        writer.write(HEAD % (PATH.encode(), len(BODY)) + BODY[:1000])
        assert (await asyncio.wait_for(reader.read(), 10)).startswith(b"HTTP/1.1 413 ")
        with pytest.raises(ConnectionError):
            await send_on(writer)
        assert 0.3 < time.monotonic() - began_s < 5.0
        writer.close()
