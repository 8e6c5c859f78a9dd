"""Requests through an activator: held while no replica is warm, answered once one is."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import ClientResponse, WSMsgType, web

from headroom.activator.held_request import Bounds
from headroom.gateway import Endpoint
from support.fakes_activator import KEY, TOKEN, Stage, stage
from support.fakes_gateway import Replica, shout

pytestmark = pytest.mark.clock


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ReplicaOf = Callable[[Serve], Awaitable[Endpoint]]


@pytest.fixture
async def replica_of() -> AsyncIterator[ReplicaOf]:
    """Start replicas that answer on the connection itself."""
    servers: list[asyncio.Server] = []
    tasks: set[asyncio.Task[None]] = set()

    async def start(serve: Serve) -> Endpoint:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            with suppress(asyncio.CancelledError):
                await serve(reader, writer)
            writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=1024)
        servers.append(server)
        return Endpoint("127.0.0.1", server.sockets[0].getsockname()[1])

    yield start
    for one in servers:
        one.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def echo(request: web.Request) -> web.Response:
    return web.Response(body=await request.read(), headers={"x-path": request.path})


def ask(held: Stage, body: bytes = b"x", **headers: str) -> asyncio.Task[ClientResponse]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return asyncio.create_task(held.client.post(held.url, data=body, headers=named))


async def test_held_request_requests_a_replica_and_is_answered_when_it_is_warm(
    held: Stage, started: list[Replica]
) -> None:
    await held.opened()
    bodies = [bytes([number]) * 1000 * number for number in range(1, 30)]
    asked = [ask(held, body) for body in bodies]
    await held.held(len(bodies))
    assert held.woken == [KEY]
    assert held.api.arrived(KEY) == len(bodies)
    started.append(await Replica(echo).start())
    warm_s = time.monotonic()
    held.tell(started[0])
    answered = await asyncio.gather(*asked)
    assert time.monotonic() - warm_s < 1.0
    assert [await one.read() for one in answered] == bodies
    assert {one.status for one in answered} == {200}
    assert {one.headers["x-path"] for one in answered} == {"/v2/infer"}
    await held.held(1)  # a request arrived within the last seconds


@pytest.mark.parametrize("status", [429, 503])
async def test_request_refused_by_a_replica_is_retried(
    held: Stage, started: list[Replica], status: int
) -> None:
    """A replica for two requests with an in-flight limit of eight."""
    inside = 0

    async def narrow(request: web.Request) -> web.Response:
        nonlocal inside
        if inside >= 2:
            return web.Response(status=status, headers={"Retry-After": "1"})
        inside += 1
        await asyncio.sleep(0.02)
        inside -= 1
        return web.Response(body=await request.read())

    await held.opened()
    asked = [ask(held) for _ in range(20)]
    await held.held(20)
    started.append(await Replica(narrow).start())
    held.tell(started[0])
    answered = await asyncio.gather(*asked)
    assert {one.status for one in answered} == {200}


async def test_bytes_behind_a_held_request_count_towards_its_bound(held: Stage) -> None:
    await held.opened(max_body_bytes=100_000)
    reader, writer = await asyncio.open_connection("127.0.0.1", held.port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await held.held(1)
        writer.write(bytes(1_000_000))
        async with asyncio.timeout(10):
            with suppress(ConnectionResetError):  # closed with unread bytes: reset or 413
                assert (await reader.read()).startswith(b"HTTP/1.1 413 ")
    finally:
        writer.close()


async def test_refusal_by_deadline_or_bound_has_retry_after(
    tmp_path: Path, started: list[Replica]
) -> None:
    async with stage(tmp_path, Bounds(requests_per_service=3)) as held:
        await held.opened(cold_start_s=6.0)
        late = await ask(held, x_request_timeout="2")
        assert (late.status, late.headers["Retry-After"]) == (503, "6")
        assert (await late.json())["reason"] == "TooLate"
        await held.held(1)
        assert held.woken == [KEY]  # who comes back finds it warm
        asked = [ask(held) for _ in range(3)]
        await held.held(3)
        many = await ask(held)
        assert many.status == 429
        assert 1 <= int(many.headers["Retry-After"]) <= 6
        held.tell(cold_start_s=None)
        for one in asked:
            one.cancel()
        await held.held(1)  # a request arrived within the last seconds
        brief = await ask(held, x_request_timeout="0.5")
        assert (brief.status, (await brief.json())["reason"]) == (503, "Expired")


async def test_replica_that_closes_the_connection_is_retried_once_if_idempotent(
    held: Stage, started: list[Replica]
) -> None:
    async def dies_first(request: web.Request) -> web.Response:
        if len(started[0].seen) == 1:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(text="second")

    started.append(await Replica(dies_first).start())
    await held.opened()
    held.tell(started[0])
    answered = await ask(held)
    assert (answered.status, await answered.text()) == (200, "second")
    started[0].seen.clear()
    answered = await ask(held, x_headroom_idempotent="false")
    assert (answered.status, (await answered.json())["reason"]) == (503, "Failed")


async def test_streams_and_websockets_are_forwarded(held: Stage, started: list[Replica]) -> None:
    await held.opened()
    connecting = asyncio.create_task(held.client.ws_connect(held.url))
    await held.held(1)
    started.append(await Replica(shout).start())
    held.tell(started[0])
    async with await connecting as socket:
        await socket.send_str("hello")
        answer = await socket.receive()
        assert (answer.type, answer.data) == (WSMsgType.TEXT, "hello!")


async def test_disconnected_client_releases_its_request(
    held: Stage, started: list[Replica]
) -> None:
    await held.opened()
    asked = ask(held)
    await held.held(1)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    started.append(await Replica(echo).start())
    held.tell(started[0])
    assert (await ask(held, b"mine")).status == 200
    assert len(started[0].seen) == 1


async def test_client_that_left_is_released_although_its_replica_does_not_read(
    held: Stage, replica_of: ReplicaOf
) -> None:
    asked = 0

    async def mute_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            await asyncio.Event().wait()
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    size = 8 << 20  # more than the kernel takes
    await held.opened(max_body_bytes=size)
    _, writer = await asyncio.open_connection("127.0.0.1", held.port)
    writer.write(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % size)
    writer.write(bytes(size))
    await held.held(1)
    held.tell(await replica_of(mute_once), max_body_bytes=size, in_flight=1)
    await asyncio.sleep(0.5)  # as much is sent as the kernel takes
    writer.close()
    async with asyncio.timeout(5.0), await ask(held) as answered:
        assert (answered.status, asked) == (200, 2)


async def test_status_in_several_segments_is_an_answer(held: Stage, replica_of: ReplicaOf) -> None:
    asked = 0

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.readuntil(b"\r\n\r\n")
        for part in (b"HTTP/1.1 ", b"200 OK\r\ncontent-length: 2\r\n\r\nok"):
            writer.write(part)
            await asyncio.sleep(0.1)

    await held.opened()
    held.tell(await replica_of(slow))
    async with await ask(held) as answered:
        assert (answered.status, await answered.text(), asked) == (200, "ok", 1)


async def test_answer_that_breaks_off_does_not_end_as_a_whole_one(
    held: Stage, replica_of: ReplicaOf
) -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        await asyncio.sleep(0.2)
        reset = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        writer.transport.abort()

    await held.opened()
    held.tell(await replica_of(cut))
    reader, writer = await asyncio.open_connection("127.0.0.1", held.port)
    writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert (await reader.readexactly(23)).endswith(b"half")
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()


async def test_shutdown_refuses_held_requests_with_retry_after(tmp_path: Path) -> None:
    async with stage(tmp_path, drain_s=0.3) as held:
        await held.opened(cold_start_s=20.0)
        asked = [ask(held) for _ in range(5)]
        await held.held(5)
        held.ended.set()
        answered = await asyncio.gather(*asked)
        assert {one.status for one in answered} == {503}
        assert all(18 <= int(one.headers["Retry-After"]) <= 20 for one in answered)
        assert held.api.accepting(held.port) == ()
        await held.running


async def test_activator_api_requires_a_token_and_the_leader(held: Stage) -> None:
    await held.opened()
    desk_url = held.activator.client.url
    for token, body, status in (
        ("somebody's", b"{}", 401),
        (TOKEN, b"[]", 400),
        (TOKEN, b'{"address":"127.0.0.1","held":{"a/b":-1}}', 400),
        (TOKEN, b'{"address":"127.0.0.1","arrived":{"a/b":"1"}}', 400),
        (TOKEN, b'{"address":"10.0.0.9","held":{"a/b":1}}', 403),
        (TOKEN, b'{"address":"activator.vision","held":{"a/b":1}}', 403),
        (TOKEN, b'{"address":"127.0.0.1","held":{"a/b":1}}', 204),
    ):
        headers = {"Authorization": f"Bearer {token}"}
        async with held.client.post(f"{desk_url}/v1/held", data=body, headers=headers) as said:
            assert said.status == status, body
    assert held.woken == ["a/b"]
    held.api.withdraw()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    body = b'{"address":"127.0.0.1"}'
    async with held.client.post(f"{desk_url}/v1/held", data=body, headers=headers) as said:
        assert said.status == 503
