"""A gateway's page is complete, in time and bounded, or an error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from headroom.adapters.gateways.gateway_scraper import GatewayScraper
from headroom.errors import ScrapeFailed
from support.loopback import on_loopback

pytestmark = pytest.mark.clock


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.Response:
        match request.path:
            case "/slow":
                await asyncio.sleep(5.0)
            case "/large":
                return web.Response(body=b"x" * 2000)
            case "/elsewhere":
                raise web.HTTPFound("/page")
            case "/binary":
                return web.Response(body=b"\xff")
        return web.Response(text="a page")

    async with on_loopback(answer) as served:
        yield served


async def test_page_is_fetched(url: str) -> None:
    async with GatewayScraper() as scraper:
        assert await scraper.scrape(f"{url}/page") == "a page"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("slow", "did not answer within 0.2 s"),
        ("large", "returned more than 1000 bytes"),
        ("elsewhere", "returned status 302"),
        ("binary", "UnicodeDecodeError"),
    ],
)
async def test_malformed_page_is_an_error(url: str, path: str, why: str) -> None:
    async with GatewayScraper(deadline_s=0.2, most_bytes=1000) as scraper:
        with pytest.raises(ScrapeFailed, match=why):
            await scraper.scrape(f"{url}/{path}")


async def test_unreachable_gateway_is_an_error() -> None:
    async with GatewayScraper() as scraper:
        with pytest.raises(ScrapeFailed, match="ClientConnectorError"):
            await scraper.scrape("http://127.0.0.1:1/stats/services")
