"""A real Envoy in front of an activator: answers while a service has no replica."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientResponse, ClientSession, TCPConnector, web

from free_ports import free_port
from headroom.gateway import Endpoint, Route
from support.fakes_activator import KEY, Stage, stage
from support.fakes_gateway import Gateway, Replica, route

pytestmark = pytest.mark.clock

CLIENTS = 200


@pytest.fixture
async def held(tmp_path: Path) -> AsyncIterator[Stage]:
    folder = tmp_path / "activator"  # the gateway's token is next to it
    folder.mkdir()
    async with stage(folder) as held:
        await held.opened(cold_start_s=4.0)
        yield held


@pytest.fixture
async def client() -> AsyncIterator[ClientSession]:
    async with ClientSession(connector=TCPConnector(limit=0)) as client:
        yield client


async def ask(client: ClientSession, one: Route, **headers: str) -> tuple[int, str | None, str]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    url = f"http://127.0.0.1:{one.port}/v2/infer"
    async with client.post(url, data=b"x" * 2000, headers=named) as answer:
        await answer.read()
        return answer.status, answer.headers.get("Retry-After"), _kept(answer)


def _kept(answer: ClientResponse) -> str:
    return ",".join(name for name in answer.headers if name.lower().startswith("x-envoy"))


async def test_held_requests_are_all_answered_soon_after_a_replica_is_warm(
    front: Gateway, held: Stage, client: ClientSession
) -> None:
    async def ok(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(text="ok")

    one = route(port=free_port())
    await front.tell(one, replicas={one.key: [Endpoint("127.0.0.1", held.port)]})
    asked = [asyncio.create_task(ask(client, one)) for _ in range(CLIENTS)]
    await held.held(CLIENTS)
    replica = await Replica(ok).start()
    warm_s = time.monotonic()
    held.tell(replica)
    await front.tell(one, replicas={one.key: [replica.endpoint]})
    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    assert time.monotonic() - warm_s < 1.0
    assert Counter(await asyncio.gather(*asked)) == {(200, None, ""): CLIENTS}
    assert await ask(client, one) == (200, None, "")
    await replica.stop()


@pytest.mark.parametrize("kind", ["split", "models"])
async def test_route_to_a_service_without_replica_holds_for_that_service(
    front: Gateway, held: Stage, client: ClientSession, kind: str
) -> None:
    async def ok(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(text="ok")

    own, other = await Replica(ok).start(), await Replica(ok).start()
    at_zero = route(port=free_port())
    leads = {"split": ((KEY, 100),)} if kind == "split" else {"models": (("bert", KEY),)}
    one = route(name="front", port=free_port(), **leads)
    activator = Endpoint("127.0.0.1", held.port)
    await front.tell(one, at_zero, replicas={one.key: [own.endpoint], KEY: [activator]})
    url = f"http://127.0.0.1:{one.port}/v2/models/bert/infer"
    asked = asyncio.create_task(_status(client, url))
    await held.held(1)
    assert held.woken == [KEY]
    assert held.api.arrived(KEY) == 1
    held.tell(other)
    assert await asked == 200
    assert (len(own.seen), len(other.seen)) == (0, 1)
    for replica in (own, other):
        await replica.stop()


async def _status(client: ClientSession, url: str) -> int:
    async with client.post(url, data=b"x") as answer:
        await answer.read()
        return answer.status


async def test_refusal_reaches_the_client_without_a_retry(
    front: Gateway, held: Stage, client: ClientSession
) -> None:
    one = route(port=free_port())
    await front.tell(one, replicas={one.key: [Endpoint("127.0.0.1", held.port)]})
    assert await ask(client, one, x_request_timeout="2") == (503, "4", "")
    page = held.activator.metrics.page(0, 0).decode()
    assert 'outcome="TooLate",service="vision/resnet50"} 1.0' in page


async def test_killed_activator_leaves_every_client_with_retry_after(
    front: Gateway, held: Stage, client: ClientSession
) -> None:
    one = route(port=free_port())
    await front.tell(one, replicas={one.key: [Endpoint("127.0.0.1", held.port)]})
    asked = [
        asyncio.create_task(ask(client, one, x_headroom_idempotent=str(number % 2 == 0)))
        for number in range(CLIENTS)
    ]
    await held.held(CLIENTS)
    held.running.cancel()
    answered = await asyncio.gather(*asked)
    assert {status for status, _, _ in answered} <= {429, 503}
    assert {again for _, again, _ in answered} == {"1"}
