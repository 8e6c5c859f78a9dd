"""Requests through an activator: held while no replica is warm, and answered once one is."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientResponse, ClientSession, WSMsgType, web

from activator_world import KEY, Stage, stage
from gateway_world import Replica
from headroom.activator.holding import Bounds


@pytest.fixture
async def held(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path) as held:
        yield held


@pytest.fixture
async def started() -> AsyncIterator[list[Replica]]:
    replicas: list[Replica] = []
    yield replicas
    for one in replicas:
        await one.stop()


async def echo(request: web.Request) -> web.Response:
    return web.Response(body=await request.read(), headers={"x-path": request.path})


def ask(held: Stage, body: bytes = b"x", **headers: str) -> asyncio.Task[ClientResponse]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return asyncio.create_task(held.client.post(held.url, data=body, headers=named))


async def test_a_request_is_held_wakes_the_operator_and_is_answered_once_a_replica_is_warm(
    held: Stage, started: list[Replica]
) -> None:
    await held.opened()
    bodies = [bytes([number]) * 1000 * number for number in range(1, 30)]
    asked = [ask(held, body) for body in bodies]
    await held.held(len(bodies))
    assert held.woken == [KEY]
    started.append(await Replica(echo).start())
    warm_s = time.monotonic()
    held.tell(started[0])
    answered = await asyncio.gather(*asked)
    assert time.monotonic() - warm_s < 1.0
    assert [await one.read() for one in answered] == bodies
    assert {one.status for one in answered} == {200}
    assert {one.headers["x-path"] for one in answered} == {"/v2/infer"}
    await held.held(0)
