"""A real Envoy while replicas fail, the operator is away, or the gateway is killed."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import web

from free_ports import free_port
from headroom.adapters.gateways.xds_server import XdsServer
from headroom.gateway import Endpoint, snapshot
from headroom.gateway.clusters import EJECTED_S
from support.fakes_gateway import (
    Gateway,
    Replica,
    authenticate,
    dies,
    ok,
    service,
    until,
    url,
)

pytestmark = pytest.mark.clock


async def test_killed_replica_loses_no_idempotent_request(
    front: Gateway, started: list[Replica]
) -> None:
    dead, alive = await Replica(dies).start(), await Replica(ok).start()
    started += [dead, alive]
    gone = Endpoint("127.0.0.1", free_port())
    one = service()
    await front.tell(one, replicas={one.key: [dead.endpoint, alive.endpoint]})
    for _ in range(10):
        async with front.client.post(url(one), data=b"x") as answered:
            assert answered.status == 200

    await front.tell(one, replicas={one.key: [gone, alive.endpoint]})
    for _ in range(20):
        async with front.client.post(url(one), data=b"x") as answered:
            assert answered.status == 200

    # Nor when it comes back into the choice, fails at once and is left out again.
    until_s = time.monotonic() + 3.5
    while time.monotonic() < until_s:
        async with front.client.post(url(one), data=b"x") as answered:
            assert answered.status == 200
        await asyncio.sleep(0.005)

    # One that may be computed once only is not repeated after a replica has read it.
    await front.tell(one, replicas={one.key: [dead.endpoint]})
    before = len(dead.seen)
    headers = {"x-headroom-idempotent": "false"}
    async with front.client.post(url(one), data=b"x", headers=headers) as answered:
        assert answered.status == 503
        assert (await answered.json(content_type=None))["error"]
    assert len(dead.seen) == before + 1


async def test_replica_with_consecutive_failures_is_ejected(
    front: Gateway, started: list[Replica]
) -> None:
    async def fails(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=502)

    bad, good = await Replica(fails).start(), await Replica(ok).start()
    started += [bad, good]
    one = service()
    await front.tell(one, replicas={one.key: [bad.endpoint, good.endpoint]})
    answers: list[tuple[float, int]] = []
    fifth_s = float("inf")
    while time.monotonic() < fifth_s + 0.75 * EJECTED_S:
        async with front.client.get(url(one)) as answered:
            answers.append((time.monotonic(), answered.status))
        if [status for _, status in answers].count(502) == 5:
            fifth_s = min(fifth_s, time.monotonic())
    known_s = fifth_s + 0.25 * EJECTED_S  # a worker learns of it from Envoy's main thread
    before = [status for at_s, status in answers if at_s <= fifth_s]
    after = [status for at_s, status in answers if at_s > known_s]
    assert before.count(502) == 5  # in a row, between good ones of the other
    assert after
    assert set(after) == {200}


async def test_routing_continues_without_the_operator(
    front: Gateway, started: list[Replica]
) -> None:
    started.append(await Replica(ok).start())
    one = service()
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    front.xds_task.cancel()
    await asyncio.gather(front.xds_task, return_exceptions=True)
    for _ in range(30):
        async with front.client.get(url(one)) as answered:
            assert answered.status == 200
        await asyncio.sleep(0.05)


async def test_killed_gateway_is_noticed_at_once(front: Gateway) -> None:
    left = asyncio.Event()
    await front.tell(service(), replicas={})
    front.xds.listen(on_left=left.set)
    front.process.kill()
    async with asyncio.timeout(1):
        await left.wait()


async def test_follower_ends_the_stream_so_that_the_gateway_finds_the_leader(
    front: Gateway, started: list[Replica]
) -> None:
    """The first operator ends its streams, and another starts at the same address with a change."""
    started += [await Replica(ok).start() for _ in range(2)]
    one = service()
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    front.xds.withdraw()
    await asyncio.sleep(0.3)
    front.xds_task.cancel()
    await asyncio.gather(front.xds_task, return_exceptions=True)
    following = XdsServer(authenticate)
    following.publish(snapshot([one], {one.key: [started[1].endpoint]}, {}))
    front.xds_task = asyncio.create_task(following.serve(front.xds_port, "127.0.0.1"))

    async def known() -> bool:
        return (await front.hosts()).get(one.key) == {started[1].endpoint}

    await until(known, "the second operator's snapshot is in use", 5.0)
    async with front.client.get(url(one)) as answered:
        assert answered.status == 200
    assert started[1].seen
