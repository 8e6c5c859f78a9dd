"""A small HTTP server on loopback with responses set by each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from answering import Answering


@pytest.fixture
async def server() -> AsyncIterator[Answering]:
    answering = Answering()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answering.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    answering.url = f"http://{host}:{port}"
    yield answering
    await runner.cleanup()
