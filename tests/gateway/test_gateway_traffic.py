"""Classes, tenants, traffic shares, models, hedging and gRPC through a real Envoy."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial

import grpc
import grpc.aio
import pytest
from aiohttp import web

from free_ports import free_port
from headroom.gateway import Endpoint, Route
from headroom.gateway.listener.model_routes import HEADER
from headroom.gateway.values import Hedge, RequestClass, TenantLimit
from support.fakes_gateway import Gateway, Replica, ok, service, until, url

pytestmark = pytest.mark.clock


async def status_of(front: Gateway, one: Route, path: str = "/", **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with front.client.get(url(one, path), headers=named) as answered:
        await answered.read()
        return answered.status


async def test_class_sets_priority_and_deadline(front: Gateway, started: list[Replica]) -> None:
    async def sleeps(request: web.Request) -> web.Response:
        await asyncio.sleep(0.6 if request.path == "/slow" else 0.0)
        return web.Response()

    started.append(await Replica(sleeps).start())
    batch = RequestClass(name="batch", priority=9, deadline_s=None)
    urgent = RequestClass(name="urgent", priority=0, deadline_s=0.3)
    one = service(classes=(urgent, batch))
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    assert await status_of(front, one, x_slo_class="batch", x_request_priority="0") == 200
    assert started[0].seen[-1]["x-request-priority"] == "9"
    assert "x-request-timeout" not in started[0].seen[-1]
    assert await status_of(front, one, x_slo_class="urgent") == 200
    assert started[0].seen[-1]["x-request-priority"] == "0"
    assert started[0].seen[-1]["x-request-timeout"] == "0.3"
    assert await status_of(front, one, "/slow", x_slo_class="urgent") == 504
    assert await status_of(front, one, "/slow", x_slo_class="urgent", x_request_timeout="2") == 200
    assert await status_of(front, one, "/slow", x_slo_class="batch") == 200
    assert await status_of(front, one, "/slow") == 200


async def test_flood_of_one_tenant_is_limited_without_affecting_another(
    front: Gateway, started: list[Replica]
) -> None:
    started.append(await Replica(ok).start())
    one = service(tenants=TenantLimit(header="x-tenant", rate_rps=5, burst=5))
    await front.tell(one, replicas={one.key: [started[0].endpoint]})

    async def asks(number: int, **tenant: str) -> Counter[int]:
        """Send all at once; a bucket of 5, refilled with 5 per second, limits them."""
        begun_s = time.monotonic()
        found = Counter(
            await asyncio.gather(*(status_of(front, one, **tenant) for _ in range(number)))
        )
        assert 5 <= found[200] <= 5 + 5 * (1 + time.monotonic() - begun_s)
        assert found[429] == number - found[200]
        return found

    flood, other = await asyncio.gather(asks(60, x_tenant="flood"), asks(5, x_tenant="other"))
    assert other == {200: 5}
    assert flood[429]
    assert (await asks(60))[429], "who names no tenant is one, too"
    again = None
    while again is None:
        async with front.client.get(url(one), headers={"x-tenant": "flood"}) as answered:
            again = answered.headers.get("Retry-After")
    assert (answered.status, again) == (429, "1")


async def test_traffic_shares_and_models_route_to_other_services(
    front: Gateway, started: list[Replica]
) -> None:
    started += [await Replica(ok).start() for _ in range(3)]
    canary, other = service(name="canary"), service(name="bert")
    longest = "." * 128
    models = (("bert-base", other.key), (longest, other.key))
    urgent = RequestClass(name="urgent", priority=0, deadline_s=None)
    one = service(split=((canary.key, 25),), models=models, classes=(urgent,))
    routes = (one, canary, other)
    hosts = {each.key: [r.endpoint] for each, r in zip(routes, started, strict=True)}
    await front.tell(*routes, replicas=hosts)
    for _ in range(200):
        assert await status_of(front, one) == 200
    stayed, went, _ = (len(replica.seen) for replica in started)
    assert stayed + went == 200
    assert 20 <= went <= 85  # 25 % of 200; six standard deviations are 37
    paths = (
        "/v2/models/bert-base/infer",
        "/v1/models/bert-base:predict",
        "/v2/models/bert-base?x=1",
        f"/v2/models/{longest}",
    )
    for path in paths:
        for named in ({}, {"x-slo-class": "urgent"}):
            async with front.client.get(url(one, path), headers=named) as answered:
                assert answered.status == 200
    assert len(started[2].seen) == 2 * len(paths)
    for path in ("/v2/models/bert-base2/infer", "/v2/models/bert", "/models/bert-base"):
        async with front.client.get(url(one, path), headers={HEADER: "bert-base"}) as answered:
            assert answered.status == 200
    assert len(started[2].seen) == 2 * len(paths)
    assert not any(HEADER in map(str.lower, seen) for each in started for seen in each.seen)


async def test_slow_replica_is_hedged_except_for_non_idempotent_requests(
    front: Gateway, started: list[Replica]
) -> None:
    ended = asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        for _ in range(60):
            await asyncio.sleep(0.05)
            if request.transport is None or request.transport.is_closing():
                ended.set()
        return web.Response(text="slow")

    started += [await Replica(slow).start(), await Replica(ok).start()]
    one = service(hedge=Hedge(after_s=0.2, budget_percent=5.0))
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    asked = asyncio.create_task(front.client.get(url(one), headers={"x-headroom-idempotent": "no"}))
    await until(partial(_seen, started[0], 1), "the slow one has it")
    await front.tell(one, replicas={one.key: [replica.endpoint for replica in started]})
    begun_s = time.monotonic()
    async with await asked as answered:
        assert await answered.text() == "ok"
    assert time.monotonic() - begun_s < 2.0
    await asyncio.wait_for(ended.wait(), 2.0)

    once = {"x-headroom-idempotent": "false"}
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    before = [len(replica.seen) for replica in started]
    asked = asyncio.create_task(front.client.get(url(one), headers=once))
    await until(partial(_seen, started[0], before[0] + 1), "the slow one has it")
    await front.tell(one, replicas={one.key: [replica.endpoint for replica in started]})
    async with await asked as answered:
        assert await answered.text() == "slow"
    assert len(started[1].seen) == before[1]


async def test_slow_grpc_call_is_hedged_except_for_non_idempotent_and_streams(
    front: Gateway,
) -> None:
    asked: Counter[str] = Counter()
    ended = asyncio.Event()

    def methods(name: str, waits_s: float) -> grpc.GenericRpcHandler:
        async def say(*_: object) -> bytes:
            asked[name] += 1
            try:
                await asyncio.sleep(waits_s)
            except asyncio.CancelledError:
                ended.set()
                raise
            return name.encode()

        async def count(*_: object) -> AsyncIterator[bytes]:
            for _number in range(4):
                yield name.encode()
                await asyncio.sleep(0.1)

        handlers = {
            "Say": grpc.unary_unary_rpc_method_handler(say),
            "Count": grpc.unary_stream_rpc_method_handler(count),
        }
        return grpc.method_handlers_generic_handler("test.Model", handlers)

    port, servers = free_port(), []
    hosts = [Endpoint(f"127.0.0.{number}", port) for number in (1, 2)]
    for host, name, waits_s in zip(hosts, ("slow", "fast"), (1.5, 0.0), strict=True):
        server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
        server.add_generic_rpc_handlers((methods(name, waits_s),))
        server.add_insecure_port(f"{host.address}:{port}")
        await server.start()
        servers.append(server)
    one = service(grpc_port=port, hedge=Hedge(after_s=0.2, budget_percent=5.0))
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{one.port}") as channel:
            say = channel.unary_unary("/test.Model/Say")
            for once, answer in (("true", b"fast"), ("false", b"slow")):
                await front.tell(one, replicas={one.key: hosts[:1]})
                asked.clear()
                call = say(b"x", metadata=(("x-headroom-idempotent", once),), timeout=10.0)
                waiting = asyncio.ensure_future(call)
                await until(partial(_asked, asked, "slow"), "the slow one has it")
                await front.tell(one, replicas={one.key: hosts})
                assert await waiting == answer, once
                await asyncio.wait_for(ended.wait(), 2.0)
            assert asked["fast"] == 0
            said = [word async for word in channel.unary_stream("/test.Model/Count")(b"x")]
            assert len(said) == 4
    finally:
        for server in servers:
            await server.stop(grace=None)


async def _asked(asked: Counter[str], name: str) -> bool:
    return asked[name] > 0


async def _seen(replica: Replica, number: int) -> bool:
    return len(replica.seen) >= number


async def test_grpc_calls_and_streams_reach_the_replicas(front: Gateway) -> None:
    async def echo(asked: AsyncIterator[bytes], _: object) -> AsyncIterator[bytes]:
        async for message in asked:
            yield message + b"!"

    async def late(asked: bytes, _: object) -> bytes:
        await asyncio.sleep(5.0)
        return asked

    server = grpc.aio.server()
    methods = {
        "Echo": grpc.stream_stream_rpc_method_handler(echo),
        "Late": grpc.unary_unary_rpc_method_handler(late),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Model", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    one = service(grpc_port=port)
    try:
        host = Endpoint("127.0.0.1", free_port())
        await front.tell(one, replicas={one.key: [host]})
        async with grpc.aio.insecure_channel(f"127.0.0.1:{one.port}") as channel:
            call = channel.stream_stream("/test.Model/Echo")()
            for word in (b"one", b"two"):
                await call.write(word)
                assert await call.read() == word + b"!"
            await call.done_writing()
            begun_s = time.monotonic()
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await channel.unary_unary("/test.Model/Late")(b"x", timeout=0.4)
            assert ended.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert time.monotonic() - begun_s < 2.0
    finally:
        await server.stop(grace=None)
