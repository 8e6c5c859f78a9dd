"""A gateway that ends waits for the requests that it has, and for those that still arrive."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from support.fakes_gateway import Gateway, Replica, image_environment, ok, service, url

pytestmark = pytest.mark.clock

DRAIN = Path(__file__).parents[2] / "deploy" / "gateway" / "drain.py"
ARRIVE_FOR_S = 6.0


async def drained(front: Gateway) -> float:
    """Drain the gateway; return when that ended."""
    words = (str(DRAIN), f"127.0.0.1:{front.admin_port}")
    draining = await asyncio.create_subprocess_exec(sys.executable, *words, env=image_environment())
    assert await draining.wait() == 0
    return time.monotonic()


async def ask(path: str) -> int:
    """Ask over a new connection, as clients do that kube-proxy leads here."""
    async with ClientSession() as client, client.get(path) as answer:
        await answer.read()
        return answer.status


async def test_gateway_waits_as_long_as_requests_arrive_and_answers_them(
    front: Gateway, started: list[Replica]
) -> None:
    """Endpoints of a node that follows late: its clients were refused."""
    started.append(await Replica(ok).start())
    one = service()
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    end = asyncio.create_task(drained(front))
    last_s = time.monotonic() + ARRIVE_FOR_S
    while time.monotonic() < last_s:
        assert await ask(url(one)) == 200
        assert not end.done()
        await asyncio.sleep(0.3)
    assert 0.0 <= await end - last_s < 6.0


async def test_gateway_waits_for_a_request_in_flight(
    front: Gateway, started: list[Replica]
) -> None:
    async def slow(_: web.Request) -> web.Response:
        await asyncio.sleep(ARRIVE_FOR_S)
        return web.Response(text="ok")

    started.append(await Replica(slow).start())
    one = service()
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    asking = asyncio.create_task(ask(url(one)))
    await asyncio.sleep(0.5)
    end = asyncio.create_task(drained(front))
    assert await asking == 200
    answered_s = time.monotonic()
    assert await end > answered_s
