"""Upgrades to WebSocket through a real Envoy: refused, or within limits of their own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import ClientWebSocketResponse, WSMsgType, WSServerHandshakeError, web

from headroom.gateway import Route
from headroom.gateway.listener.access_counts import ADMIN_PATH, ServiceCounters, read
from headroom.gateway.values import TenantLimit
from support.fakes_gateway import Gateway, Replica, ok, service, shout, until, url

pytestmark = pytest.mark.clock

UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket"}


async def echoes(request: web.Request) -> web.StreamResponse:
    if request.headers.get("upgrade") != "websocket":
        return await ok(request)
    return await shout(request)


async def routed(front: Gateway, started: list[Replica], **changes: Any) -> Route:
    started.append(await Replica(echoes).start())
    one = service(**changes)
    await front.tell(one, replicas={one.key: [started[0].endpoint]}, bound=1)
    return one


async def connect(front: Gateway, one: Route, **headers: str) -> ClientWebSocketResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await front.client.ws_connect(url(one), headers=named)


async def status_of(front: Gateway, one: Route, **headers: str) -> int:
    """Return the status of a handshake; 101 if it was accepted, and ended at once."""
    try:
        socket = await connect(front, one, **headers)
    except WSServerHandshakeError as refused:
        return refused.status
    await socket.close()
    return 101


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
        b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
        b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: something\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n",
        b"POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 9000\r\n",
    ],
)
@pytest.mark.parametrize("most", [0, 1])
async def test_upgrade_that_the_service_does_not_ask_for_reaches_no_replica(
    front: Gateway, started: list[Replica], head: bytes, most: int
) -> None:
    if most and b"GET" in head and b"websocket" in head:
        return
    one = await routed(front, started, max_upgrades=most)
    reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
    writer.write(head + b"Host: a\r\n\r\n")
    status = (await asyncio.wait_for(reader.readline(), 5.0)).split()[1]
    writer.close()
    # An upgrade to HTTP/2 may be answered as if it had not been asked for (RFC 7540, 3.2).
    assert status in ((b"403", b"404", b"200") if b"h2c" in head else (b"403", b"405"))
    upgraded = [seen for seen in started[0].seen if "Upgrade" in seen]
    assert not upgraded


async def test_upgrades_have_a_bound_of_their_own(front: Gateway, started: list[Replica]) -> None:
    one = await routed(front, started, max_upgrades=3)
    sockets = [await connect(front, one) for _ in range(3)]
    await sockets[0].send_str("hello")
    answer = await sockets[0].receive()
    assert (answer.type, answer.data) == (WSMsgType.TEXT, "hello!")
    assert [await status_of(front, one) for _ in range(10)] == [429] * 10
    for _ in range(10):  # the place in flight is free
        async with front.client.post(url(one), data=b"x") as answered:
            assert answered.status == 200
    for socket in sockets:
        await socket.close()

    async def counted() -> bool:
        async with front.client.get(f"http://127.0.0.1:{front.admin_port}{ADMIN_PATH}") as page:
            found = read(await page.text()).get(one.key, ServiceCounters())
        return (found.arrived, found.rejected, found.active) == (23, 10, 0)

    await until(counted, "upgrades count for their service")


@pytest.mark.parametrize("shares", [None, 100])
async def test_upgrades_have_the_rates_of_their_tenants(
    front: Gateway, started: list[Replica], shares: int | None
) -> None:
    limit = TenantLimit(header="x-tenant", rate_rps=2, burst=2, in_flight_percent=shares)
    one = await routed(front, started, max_upgrades=100, tenants=limit)
    flood = [await status_of(front, one, x_tenant="flood") for _ in range(30)]
    assert 2 <= flood.count(101) <= 20
    assert flood.count(429) == 30 - flood.count(101)
    assert await status_of(front, one, x_tenant="other") == 101


async def test_upgraded_connection_lasts_as_long_as_a_request_may(
    front: Gateway, started: list[Replica]
) -> None:
    one = await routed(front, started, max_upgrades=1, timeout_s=1.0)
    socket = await connect(front, one)
    ended = await socket.receive(timeout=5.0)
    assert ended.type in (WSMsgType.CLOSED, WSMsgType.CLOSE, WSMsgType.ERROR)

    async def free() -> bool:
        return await status_of(front, one) == 101

    await until(free, "its place is free")
