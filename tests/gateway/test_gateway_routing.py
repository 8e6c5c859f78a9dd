"""Requests through a real Envoy: load balancing, retries and rejections."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import grpc
import grpc.aio
import pytest
from aiohttp import WSMsgType, web

from free_ports import free_port
from headroom.adapters.gateways.xds_server.messages import METHOD
from support.fakes_gateway import (
    Gateway,
    Replica,
    is_open,
    ok,
    service,
    shout,
    until,
    url,
)

pytestmark = pytest.mark.clock


async def test_request_goes_to_the_replica_with_the_fewest_in_flight(
    front: Gateway, started: list[Replica]
) -> None:
    """Three of four replicas are blocked; every further request goes to the fourth."""
    release = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/hold":
            await release.wait()
        return web.Response(text=str(request.url.port))

    started += [await Replica(answer).start() for _ in range(4)]
    one = service()
    await front.tell(one, replicas={one.key: [replica.endpoint for replica in started]})
    held = []
    for number in (1, 2, 3):
        held.append(asyncio.create_task(front.client.get(url(one, "/hold"))))
        await until(partial(_sum, started, number), f"{number} requests are held")
    assert max(len(replica.seen) for replica in started) == 1
    idle = next(replica for replica in started if not replica.seen)
    for _ in range(20):
        async with front.client.get(url(one)) as answered:
            assert answered.status == 200
    assert len(idle.seen) == 20
    release.set()
    for response in await asyncio.gather(*held):
        assert response.status == 200
        response.release()


async def _sum(replicas: list[Replica], number: int) -> bool:
    return sum(len(replica.seen) for replica in replicas) == number


async def test_replica_receives_requests_only_while_warm_and_not_terminating(
    front: Gateway, started: list[Replica]
) -> None:
    first, second = await Replica(ok).start(), await Replica(ok).start()
    started += [first, second]
    one = service()
    await front.tell(one, replicas={one.key: [first.endpoint]})

    async def reached(replica: Replica) -> bool:
        async with front.client.get(url(one)) as answered:
            assert answered.status == 200
        return bool(replica.seen)

    await until(lambda: reached(first), "the first is reached")
    warm_s = time.monotonic()
    await front.tell(one, replicas={one.key: [first.endpoint, second.endpoint]})
    await until(lambda: reached(second), "the second is reached")
    assert time.monotonic() - warm_s < 1.0
    await front.tell(one, replicas={one.key: [second.endpoint]})
    before = len(first.seen)
    for _ in range(20):
        await reached(second)
    assert len(first.seen) == before


@pytest.mark.parametrize("status", [429, 503])
async def test_refused_request_is_retried_once_on_another_replica(
    front: Gateway, started: list[Replica], status: int
) -> None:
    async def refuse(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=status, headers={"Retry-After": "1"})

    full, free = await Replica(refuse).start(), await Replica(ok).start()
    started += [full, free]
    one = service()
    await front.tell(one, replicas={one.key: [full.endpoint, free.endpoint]})
    for _ in range(20):
        async with front.client.post(url(one), data=b"x" * 8_000) as answered:
            assert answered.status == 200
    assert full.seen
    assert {seen["x-envoy-attempt-count"] for seen in full.seen} == {"1"}
    assert {seen["x-envoy-attempt-count"] for seen in free.seen} >= {"2"}

    await front.tell(one, replicas={one.key: [full.endpoint]})
    before = len(full.seen)
    async with front.client.post(url(one), data=b"x") as answered:
        assert answered.status == status
        assert answered.headers["Retry-After"] == "1"
    assert len(full.seen) - before <= 2


@pytest.mark.parametrize(
    ("headers", "least_s", "most_s"),
    [
        pytest.param({"x-request-timeout": "0.2"}, 0.15, 0.8, id="the request's own deadline"),
        pytest.param({"x-request-timeout": "never"}, 0.9, 1.8, id="one that is no number"),
        pytest.param({}, 0.9, 1.8, id="the service's where it names none"),
        pytest.param({"x-envoy-upstream-rq-timeout-ms": "9"}, 0.9, 1.8, id="no header of Envoy's"),
    ],
)
async def test_deadline_is_forwarded_and_enforced(
    front: Gateway,
    started: list[Replica],
    headers: dict[str, str],
    least_s: float,
    most_s: float,
) -> None:
    async def sleeps(request: web.Request) -> web.Response:
        await asyncio.sleep(3.0)
        return web.Response()

    started.append(await Replica(sleeps).start())
    one = service(timeout_s=1.0)
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    begun_s = time.monotonic()
    async with front.client.get(url(one), headers=headers) as answered:
        assert answered.status == 504
    assert least_s < time.monotonic() - begun_s < most_s
    seen = started[0].seen[0]
    assert seen.get("grpc-timeout") == ("200m" if most_s < 0.9 else None)
    assert seen.get("x-request-timeout") == headers.get("x-request-timeout")
    envoys = [name.lower() for name in seen if name.lower().startswith("x-envoy")]
    assert envoys == ["x-envoy-attempt-count"]


async def test_requests_above_the_in_flight_bound_get_429_with_retry_after(
    front: Gateway, started: list[Replica]
) -> None:
    release = asyncio.Event()

    async def held(request: web.Request) -> web.Response:
        await release.wait()
        return web.Response()

    started.append(await Replica(held).start())
    one = service()
    await front.tell(one, replicas={one.key: [started[0].endpoint]}, bound=4)
    await asyncio.sleep(0.5)
    waiting = [asyncio.create_task(front.client.get(url(one))) for _ in range(12)]
    await until(lambda: _done(waiting, 8), "eight are refused")
    release.set()
    answers = await asyncio.gather(*waiting)
    assert Counter(answer.status for answer in answers) == {200: 4, 429: 8}
    refused = next(answer for answer in answers if answer.status == 429)
    assert refused.headers["Retry-After"] == "1"
    assert "in flight" in (await refused.json(content_type=None))["error"]


async def _done(tasks: Sequence[asyncio.Task[Any]], number: int) -> bool:
    return sum(task.done() for task in tasks) >= number


async def test_missing_replica_is_answered_at_once(front: Gateway) -> None:
    one = service()
    await front.tell(one, replicas={})

    async def said() -> bool:
        async with front.client.get(url(one)) as answered:
            body = await answered.json(content_type=None)
            return answered.status == 503 and body["error"] == "no replica is ready"

    await until(said, "503 with a reason")


async def test_bad_input_is_rejected_before_it_reaches_a_replica(
    front: Gateway, started: list[Replica]
) -> None:
    started.append(await Replica(ok).start())
    one = service(max_body_bytes=1000)
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    async with front.client.post(url(one), data=b"x" * 1000) as answered:
        assert answered.status == 200
    started[0].seen.clear()
    async with front.client.post(url(one), data=b"x" * 1001) as answered:
        assert answered.status == 413
    headers = {f"x-{number}": "1" for number in range(150)}
    async with front.client.get(url(one), headers=headers) as answered:
        assert answered.status == 431
    async with front.client.get(
        url(one), headers={"x": "y" * 7000} | {f"x{number}": "y" * 7000 for number in range(10)}
    ) as answered:
        assert answered.status == 431
    for raw, status in [(b"GARBAGE\r\n\r\n", b"400"), (b"GET /x HTTP/1.1\r\n\r\n", b"400")]:
        reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
        writer.write(raw)
        assert status in await reader.readline()
        writer.close()
    assert not started[0].seen


async def test_unused_and_internal_listeners_are_not_reachable(
    front: Gateway,
) -> None:
    one = service()
    await front.tell(one, replicas={})
    address = "127.0.0.2"  # any other of this machine's addresses than the one of loopback
    assert await is_open(one.port)
    assert await is_open(one.port, address)
    assert not await is_open(free_port(), address)
    assert await is_open(front.admin_port)
    assert not await is_open(front.admin_port, address)


async def test_streams_and_websockets_are_forwarded(front: Gateway, started: list[Replica]) -> None:
    heard = asyncio.Event()

    async def streams(request: web.Request) -> web.StreamResponse:
        if request.path == "/ws":
            return await shout(request)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number in range(3):
            await response.write(f"data: {number}\n\n".encode())
            await heard.wait()  # a part that is kept back until the end never arrives
        return response

    started.append(await Replica(streams).start())
    one = service(max_upgrades=1)
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    async with front.client.post(url(one, "/stream"), data=b"x") as answered:
        assert await answered.content.readline() == b"data: 0\n"
        heard.set()
        assert (await answered.read()).endswith(b"data: 2\n\n")
    async with front.client.ws_connect(url(one, "/ws")) as socket:
        await socket.send_str("hello")
        answer = await socket.receive()
        assert (answer.type, answer.data) == (WSMsgType.TEXT, "hello!")


async def test_discovery_requires_the_gateway_token_and_ops_port_serves_its_pages_only(
    front: Gateway,
) -> None:
    one = service()
    await front.tell(one, replicas={})
    for shown in ((), (("authorization", "Bearer another's"),)):
        async with grpc.aio.insecure_channel(f"127.0.0.1:{front.xds_port}") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await channel.stream_stream(METHOD)(iter([b""]), metadata=shown).read()
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    ops = f"http://127.0.0.1:{front.ops_port}"
    for path, status in {"/ready": 200, "/stats/prometheus": 200, "/quitquitquit": 404}.items():
        async with front.client.get(ops + path) as answered:
            assert answered.status == status, path
    async with front.client.post(f"{ops}/ready") as answered:
        assert answered.status == 404
    assert await is_open(one.port)
