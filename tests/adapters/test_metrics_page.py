"""A metrics page that a command reads from any server: one deadline, no other address."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from headroom.adapters.pods.metrics_page import metrics_page
from headroom.errors import Unmeasurable
from support.loopback import on_loopback

pytestmark = pytest.mark.clock


async def test_page_is_read() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="a 1\n")

    async with on_loopback(answer) as url:
        assert await asyncio.to_thread(metrics_page, url) == "a 1\n"


async def test_page_that_never_ends_is_given_up_after_the_deadline() -> None:
    """A byte at a time keeps every timeout of the socket from passing."""

    async def answer(request: web.Request) -> web.StreamResponse:
        drip = web.StreamResponse()
        await drip.prepare(request)
        while True:
            await drip.write(b"#")
            await asyncio.sleep(0.02)

    async with on_loopback(answer) as url:
        with pytest.raises(Unmeasurable, match="no whole answer"):
            async with asyncio.timeout(5):
                await asyncio.to_thread(metrics_page, url, 0.3)


async def test_redirect_is_not_followed() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=302, headers={"Location": "/latest/meta-data"})

    async with on_loopback(answer) as url:
        with pytest.raises(Unmeasurable, match="must answer with 200; got 302"):
            await asyncio.to_thread(metrics_page, f"{url}/metrics")
    assert asked == ["/metrics"]
