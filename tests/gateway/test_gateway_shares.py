"""In-flight shares per tenant, through a real Envoy."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest
from aiohttp import WSMsgType, web

from free_ports import free_port
from headroom.gateway import Endpoint, Route
from headroom.gateway.listener.access_counts import ADMIN_PATH, ServiceCounters, read
from headroom.gateway.listener.tenant_in_flight import bounds
from headroom.gateway.values import TenantLimit
from support.fakes_gateway import Gateway, Replica, gateway, route, until

pytestmark = pytest.mark.clock

BOUND = 8
SHARE = TenantLimit(header="x-tenant", in_flight_percent=25)


def shared(**changes: object) -> Route:
    return route(port=free_port(), tenants=SHARE, **changes)


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with gateway(tmp_path, concurrency=2) as front:
        yield front


class Holding:
    """Answers when released, and knows the requests in flight."""

    def __init__(self) -> None:
        self.inside: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.go = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/socket":
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            await socket.send_str("hello")
            await socket.close()
            return socket
        tenant = request.headers.get("x-tenant", "")
        self.inside[tenant] += 1
        self.most[tenant] = max(self.most[tenant], self.inside[tenant])
        await request.read()
        await self.go.wait()
        self.inside[tenant] -= 1
        return web.Response(text=request.headers.get("x-forwarded-for", ""))


async def test_tenant_share_limits_in_flight_requests_per_tenant(
    front: Gateway,
) -> None:
    holding = Holding()
    replica = await Replica(holding.answer).start()
    one = shared(max_upgrades=2)
    await front.tell(one, replicas={one.key: [replica.endpoint]}, bound=BOUND)

    async def ask(tenant: str, path: str = "/") -> tuple[int, str, str]:
        headers = {"x-tenant": tenant, "x-envoy-retry-on": "5xx"}
        url = f"http://127.0.0.1:{one.port}{path}"
        async with front.client.post(url, data=b"x" * 70_000, headers=headers) as answered:
            return answered.status, await answered.text(), answered.headers.get("retry-after", "")

    flood = [asyncio.create_task(ask("flood")) for _ in range(40)]

    async def all_answered() -> bool:
        return sum(task.done() for task in flood) + holding.inside["flood"] == 40

    await until(all_answered, "each is refused or inside")
    refused = [task.result() for task in flood if task.done()]
    # Envoy counts a request that two threads admit at the same moment for both of them.
    assert 36 <= len(refused) <= 38
    assert {status for status, _, _ in refused} == {429}
    assert {again for _, _, again in refused} == {"1"}
    assert "too many requests in flight for this tenant" in refused[0][1]
    others = [asyncio.create_task(ask(tenant)) for tenant in ("a", "b", "c")]

    async def inside() -> bool:
        return all(holding.inside[tenant] == 1 for tenant in ("a", "b", "c"))

    await until(inside, "the others are inside")
    assert 2 <= holding.most["flood"] <= 4
    holding.go.set()
    answers = await asyncio.gather(*others)
    assert [status for status, _, _ in answers] == [200] * 3
    assert all(text and "," not in text for _, text, _ in answers)  # the client alone
    assert {status for status, _, _ in await asyncio.gather(*flood)} == {200, 429}

    async def counted() -> bool:
        async with front.client.get(f"http://127.0.0.1:{front.admin_port}{ADMIN_PATH}") as page:
            found = read(await page.text()).get(one.key, ServiceCounters())
        # Refused at a gate is neither arrived nor missed: what the tenant may not is no demand.
        return (found.arrived, found.missed) == (43 - len(refused), 0)

    await until(counted, "what passed the gates is counted")
    socket_url = f"http://127.0.0.1:{one.port}/socket"
    async with front.client.ws_connect(socket_url, headers={"x-tenant": "a"}) as socket:
        message = await socket.receive(timeout=2.0)
        assert (message.type, message.data) == (WSMsgType.TEXT, "hello")
    await replica.stop()


@pytest.mark.parametrize("header", [{"x-tenant": "flood"}, {}], ids=["named", "unnamed"])
async def test_tenant_with_a_rate_alone_leaves_half_of_the_places(
    front: Gateway, header: dict[str, str]
) -> None:
    holding = Holding()
    replica = await Replica(holding.answer).start()
    limit = TenantLimit(header="x-tenant", rate_rps=1000, burst=1000)
    one = route(port=free_port(), tenants=limit)
    await front.tell(one, replicas={one.key: [replica.endpoint]}, bound=BOUND)

    async def ask(headers: dict[str, str]) -> int:
        async with front.client.post(f"http://127.0.0.1:{one.port}/", headers=headers) as answered:
            return answered.status

    flood = [asyncio.create_task(ask(header)) for _ in range(40)]
    tenant = header.get("x-tenant", "")

    async def all_answered() -> bool:
        return sum(task.done() for task in flood) + holding.inside[tenant] == 40

    await until(all_answered, "each is refused or inside")
    assert BOUND // 2 <= holding.inside[tenant] <= BOUND // 2 + 2  # two threads count at once
    quiet = asyncio.create_task(ask({"x-tenant": "quiet"}))

    async def inside() -> bool:
        return holding.inside["quiet"] == 1

    await until(inside, "another tenant is served")
    holding.go.set()
    assert await quiet == 200
    assert set(await asyncio.gather(*flood)) == {200, 429}
    await replica.stop()


async def test_grpc_calls_pass_the_gates_with_trailers(front: Gateway) -> None:
    async def echo(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        context.set_trailing_metadata((("last", "word"),))
        return request

    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(echo)
    generic = grpc.method_handlers_generic_handler("test.Echo", {"Say": handler})
    server.add_generic_rpc_handlers((generic,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    one = shared(grpc_port=port)
    hosts = [Endpoint("127.0.0.1", 1)]
    await front.tell(one, replicas={one.key: hosts}, bound=BOUND)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{one.port}") as channel:
        call = channel.unary_unary("/test.Echo/Say")(
            b"hello", metadata=(("x-tenant", "a"),), timeout=5.0
        )
        assert await call == b"hello"
        assert ("last", "word") in tuple(await call.trailing_metadata())
    await server.stop(grace=None)


@pytest.mark.parametrize(
    ("percent", "in_flight", "busy", "share"),
    [
        (25, 62, None, 16),
        (1, 10, None, 1),
        (100, 7, None, 7),
        (25, 160, 32, 8),  # what is beyond 32 only waits
        (25, 16, 32, 4),
        (None, 160, 32, 80),
        (None, 1, None, 1),
    ],
)
def test_share_is_relative_to_the_busy_bound(
    percent: int | None, in_flight: int, busy: int | None, share: int
) -> None:
    one = route(tenants=TenantLimit(header="x-tenant", in_flight_percent=percent))
    known = {} if busy is None else {one.key: busy}
    found = bounds([one], {one.key: in_flight}, known)
    assert len(found) == 32
    assert set(found.values()) == {share}
    assert bounds([one], {}, known) == {}
    assert bounds([route()], {one.key: in_flight}, known) == {}
