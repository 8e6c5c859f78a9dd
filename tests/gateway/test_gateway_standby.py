"""The standby accepts connections only without Envoy, and forwards them to another gateway."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from free_ports import free_port
from headroom.gateway import snapshot
from support.fakes_gateway import Gateway, Replica, image_environment, is_open, route, until

pytestmark = pytest.mark.clock

STANDBY = Path(__file__).parents[2] / "deploy" / "gateway" / "standby.py"
HERE, ELSEWHERE = "127.0.0.1", "127.0.0.2"
"""Pod addresses of the killed Envoy and of another gateway."""


@contextlib.asynccontextmanager
async def standing_by(admin_port: int) -> AsyncIterator[None]:
    words = ("--address", HERE, "--admin", f"127.0.0.1:{admin_port}")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(STANDBY), *words, env=image_environment()
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


@contextlib.asynccontextmanager
async def another_gateway(port: int) -> AsyncIterator[None]:
    """Answer at a service's port as another gateway's Envoy would."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=f"elsewhere {await request.text()}")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, ELSEWHERE, port, reuse_port=True).start()
    try:
        yield
    finally:
        await runner.cleanup()


async def ask(client: ClientSession, address: str, port: int, body: str = "") -> str:
    async with client.post(f"http://{address}:{port}/", data=body) as answered:
        return await answered.text()


async def test_standby_accepts_connections_after_envoy_dies(front: Gateway) -> None:
    async def here(_: web.Request) -> web.Response:
        return web.Response(text="here")

    port = free_port()
    replica = await Replica(here).start()
    one = route(port=port)
    try:
        async with another_gateway(port), standing_by(front.admin_port):
            await front.tell(one, replicas={one.key: [replica.endpoint]})
            published = snapshot([one], {one.key: [replica.endpoint]}, {}, [HERE, ELSEWHERE])
            front.xds.publish(published)

            async def led() -> bool:  # at [::1] Envoy does not listen
                return await ask(front.client, "[::1]", port) == "elsewhere "

            await until(led, "who stands by leads to the other gateway")
            for _ in range(20):
                async with ClientSession() as fresh:
                    assert await ask(fresh, HERE, port) == "here"

            front.process.kill()
            front.process.wait()
            body = "x" * 300_000
            for _ in range(20):
                async with ClientSession() as fresh:
                    assert await ask(fresh, HERE, port, body) == f"elsewhere {body}"
            assert await ends_at_once(port, ELSEWHERE)  # it would go in circles
        assert not await is_open(port)
    finally:
        await replica.stop()


async def ends_at_once(port: int, source: str) -> bool:
    reader, writer = await asyncio.open_connection(HERE, port, local_addr=(source, 0))
    try:
        async with asyncio.timeout(2):
            return await reader.read() == b""
    except ConnectionError:
        return True
    finally:
        writer.close()
