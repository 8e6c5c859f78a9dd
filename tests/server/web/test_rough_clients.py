"""Clients that send too much, too slowly, or incompletely: raw bytes to a server process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from headroom_server.web.connections.http_protocol import MAX_PIPELINED
from headroom_server.web.connections.http_refusals import MAX_HEAD_BYTES, MAX_HEADERS
from support.server_process import Server, serving

pytestmark = pytest.mark.clock

BODY = b'{"instances":[[1,2,3,4]]}'
HEAD = b"POST /v1/models/m:predict HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n" % len(BODY)
GET = b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\n"


class Client:
    """One connection, its bytes sent as they are."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self) -> bytes:
        """Status line, headers and body of the next answer."""
        head = await self.head()
        length = int(head.partition(b"content-length: ")[2].split()[0])
        return head + await self._reader.readexactly(length)

    async def head(self) -> bytes:
        """Status line and headers of the next answer."""
        return await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), 10)

    async def closed(self) -> bytes:
        """Everything until the server closes."""
        return await asyncio.wait_for(self._reader.read(), 10)

    async def leave(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


@asynccontextmanager
async def clients(server: Server, count: int) -> AsyncIterator[list[Client]]:
    port = int(server.url.rpartition(":")[2])
    them = [Client(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(count)]
    try:
        yield them
    finally:
        for one in them:
            await one.leave()


async def test_requests_are_bounded_in_bytes_and_in_time() -> None:
    async with serving(RECEIVE_TIMEOUT_S=0.6, CONNECTION_IDLE_S=1) as server:
        await server.ready()
        async with clients(server, 7) as crowd:
            silent, half_head, half_body, endless_head, endless_url, many_headers, patient = crowd
            await half_head.send(GET)
            await half_body.send(HEAD + b"\r\n" + BODY[:5])
            # send no byte beyond the limit: closed with unread bytes, the kernel sends a reset,
            # which may overtake the refusal
            await endless_head.send((GET + b"a: b\r\n" * 15_000)[: MAX_HEAD_BYTES + 1])
            await many_headers.send(GET + b"a: b\r\n" * MAX_HEADERS + b"\r\n")
            await endless_url.send(b"GET /".ljust(MAX_HEAD_BYTES + 1, b"u"))
            await patient.send(HEAD + b"expect: 100-continue\r\n\r\n")

            assert (await endless_head.closed()).startswith(b"HTTP/1.1 431 ")
            assert (await endless_url.closed()).startswith(b"HTTP/1.1 431 ")
            assert (await many_headers.closed()).startswith(b"HTTP/1.1 431 ")
            for slow in (half_head, half_body):
                reply = await slow.closed()
                assert reply.startswith(b"HTTP/1.1 408 ")
                assert b"must be complete within 0.6 s" in reply
            assert await silent.closed() == b""
            assert (await patient.closed()).startswith(b"HTTP/1.1 100 ")


async def test_invalid_http_is_answered_in_order() -> None:
    async with serving() as server:
        await server.ready()
        async with clients(server, 5) as (garbage, unread_body, pipelined, behind, broken):
            await garbage.send(b"\x16\x03\x01\x02")
            reply = await garbage.closed()
            assert reply.startswith(b"HTTP/1.1 400 ")
            assert b'{"error":"the request must be valid HTTP/1.1' in reply

            await unread_body.send(HEAD.replace(b"/m:", b"/q:") + b"expect: 100-continue\r\n\r\n")
            reply = await unread_body.closed()
            assert reply.startswith(b"HTTP/1.1 404 ")
            assert b"connection: close" in reply

            await pipelined.send((HEAD + b"\r\n" + BODY) * 2 + GET + b"\r\n")
            answers = [await pipelined.answer() for _ in range(3)]
            assert [answer.rpartition(b"\r\n")[2] for answer in answers] == [
                b'{"predictions":[10.0]}',
                b'{"predictions":[10.0]}',
                b'{"live":true}',
            ]

            # earlier requests get their responses, then the garbage gets its own
            await behind.send((HEAD + b"\r\n" + BODY) * 2 + b"\x16\x03\x01\r\n\r\n" + HEAD)
            answers = [await behind.answer() for _ in range(3)]
            assert [answer[9:12] for answer in answers] == [b"200", b"200", b"400"]
            assert await behind.closed() == b""

            chunks = HEAD.replace(b"content-length: 25", b"transfer-encoding: chunked")
            await broken.send(chunks + b"\r\n5\r\nabcde\r\nZ\r\n")
            assert (await broken.closed()).startswith(b"HTTP/1.1 400 ")


async def test_head_is_answered_as_get_without_the_body() -> None:
    async with serving() as server:
        await server.ready()
        async with clients(server, 1) as (monitor,):
            await monitor.send(GET.replace(b"GET", b"HEAD") + b"\r\n" + GET + b"\r\n")
            head = await monitor.head()
            assert head.startswith(b"HTTP/1.1 200 ")
            assert b"content-length: 13\r\n" in head
            assert (await monitor.answer()).endswith(b'{"live":true}')


TARGETS = [b"CONNECT a:1", b"GET http://[", b"GET http://a:99999999/"]


@pytest.mark.parametrize("target", TARGETS)
async def test_target_that_cannot_be_parsed_is_answered_in_order(target: bytes) -> None:
    bad = target + b" HTTP/1.1\r\nhost: x\r\n\r\n"
    async with serving() as server:
        await server.ready()
        async with clients(server, 4) as (first, behind, later, pipelined):
            await first.send(bad)
            assert (await first.closed()).startswith(b"HTTP/1.1 400 ")

            await behind.send(HEAD + b"\r\n" + BODY + bad)
            assert (await behind.answer()).endswith(b'{"predictions":[10.0]}')
            assert (await behind.closed()).startswith(b"HTTP/1.1 400 ")

            await later.send(HEAD + b"\r\n" + BODY)
            assert (await later.answer()).endswith(b'{"predictions":[10.0]}')
            await later.send(bad)
            assert (await later.closed()).startswith(b"HTTP/1.1 400 ")

            await pipelined.send((HEAD + b"\r\n" + BODY) * 3 + bad)
            assert [(await pipelined.answer())[9:12] for _ in range(4)] == [b"200"] * 3 + [b"400"]
        server.process.send_signal(signal.SIGTERM)
        _, log = await asyncio.wait_for(server.process.communicate(), 10)
        assert b"Traceback" not in log


async def test_pipelined_requests_are_bounded() -> None:
    async with serving() as server:
        await server.ready()
        async with clients(server, 1) as (eager,):
            await eager.send((HEAD + b"\r\n" + BODY) * 200)
            said = await eager.closed()
            assert said.count(b"HTTP/1.1 200 ") == MAX_PIPELINED + 1
            assert said.count(b"HTTP/1.1 429 ") == 1
            assert said.endswith(b'requests may wait on a connection; got more"}')


async def test_client_that_leaves_pipelined_requests_causes_no_traceback() -> None:
    async with serving(EMULATED_FIXED_COST_S=0.2) as server:
        await server.ready()
        async with clients(server, 5) as crowd:
            for one in crowd:
                await one.send((HEAD + b"\r\n" + BODY) * 20)
            await asyncio.sleep(0.3)
        await asyncio.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        _, log = await asyncio.wait_for(server.process.communicate(), 10)
        assert b"Traceback" not in log


async def test_connections_of_one_client_are_bounded() -> None:
    async with serving(MAX_CONNECTIONS=8) as server:
        await server.ready()
        await asyncio.sleep(0.1)  # the probe's connection is gone
        async with clients(server, 6) as crowd:
            await asyncio.sleep(0.1)
            for one in crowd[:4]:
                await one.send(GET + b"\r\n")
                assert (await one.answer()).endswith(b'{"live":true}')
            for one in crowd[4:]:
                reply = await one.closed()
                assert reply.startswith(b"HTTP/1.1 503 ")
                assert b"retry-after: 1" in reply
        async with clients(server, 1) as (next_one,):
            await next_one.send(GET + b"\r\n")
            assert (await next_one.answer()).endswith(b'{"live":true}')


async def test_bytes_that_arrive_are_bounded_in_sum() -> None:
    """A model of strings takes bodies of any length; 64 KiB of 128 may be of one client."""
    part = (
        b"POST /v1/models/m:predict HTTP/1.1\r\nhost: x\r\ncontent-length: 30000\r\n\r\n"
        + b" " * 29_000
    )
    async with serving(MAX_RECEIVING_BYTES=128 * 1024, MAX_BODY_BYTES=30_000) as server:
        await server.ready()
        async with clients(server, 4) as crowd:
            for one in crowd[:2]:
                await one.send(part)
            await asyncio.sleep(0.2)
            await crowd[2].send(part)
            reply = await crowd[2].closed()
            assert reply.startswith(b"HTTP/1.1 429 ")
            assert b"retry-after: 1" in reply
            await crowd[0].leave()
            await asyncio.sleep(0.2)
            await crowd[3].send(part + b" " * 1000)
            assert b"is not JSON" in await crowd[3].answer()


async def test_drain_serves_arriving_heads_and_cuts_slow_clients() -> None:
    async with serving(DRAIN_DELAY_S=0, DRAIN_GRACE_S=2) as server:
        await server.ready()
        async with clients(server, 2) as (late, slow):
            await late.send(HEAD)
            await slow.send(HEAD + b"\r\n")
            await asyncio.sleep(0.1)
            server.process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.6)  # the listener and the idle connections are closed by now
            await late.send(b"\r\n" + BODY)
            answer = await late.answer()
            assert answer.endswith(b'{"predictions":[10.0]}')
            assert b"connection: close" in answer
            _, log = await asyncio.wait_for(server.process.communicate(), 6)
            assert server.process.returncode == 0
            assert b"closed 1 connections" in log
