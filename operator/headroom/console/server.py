"""The HTTP server of /livez, /readyz and /metrics."""

from __future__ import annotations

import asyncio

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from headroom.console.health import Health
from headroom.console.instruments import Instruments


def application(health: Health, instruments: Instruments) -> web.Application:
    """Build the application; it needs nothing of the cluster to answer."""

    async def livez(_: web.Request) -> web.Response:
        return _verdict(health.complaint())

    async def readyz(_: web.Request) -> web.Response:
        return _verdict(health.unready())

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=instruments.page(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    served = web.Application()
    served.add_routes(
        [web.get("/livez", livez), web.get("/readyz", readyz), web.get("/metrics", metrics)]
    )
    return served


async def serve(app: web.Application, port: int) -> None:
    """Serve on all addresses until cancelled. Raises OSError where the port is taken."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port).start()
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def _verdict(complaint: str) -> web.Response:
    return web.Response(text=complaint or "ok", status=503 if complaint else 200)
