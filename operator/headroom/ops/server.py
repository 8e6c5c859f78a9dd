"""The HTTP server of /livez, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from headroom.bounded_listener import serve_pages
from headroom.ops.checks import Check, as_json, as_lines, passed
from headroom.ops.health import Health
from headroom.ops.operator_metrics import OperatorMetrics
from headroom.recent_page import RecentPage


def application(health: Health, instruments: OperatorMetrics) -> web.Application:
    """Build the application; it answers without the cluster."""
    recent = RecentPage(instruments.page)

    async def livez(request: web.Request) -> web.Response:
        return _verdict(request, "livez", health.livez(), health.about())

    async def readyz(request: web.Request) -> web.Response:
        return _verdict(request, "readyz", health.readyz(), health.about())

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=recent.get(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    served = web.Application()
    served.add_routes(
        [web.get("/livez", livez), web.get("/readyz", readyz), web.get("/metrics", metrics)]
    )
    return served


async def serve(app: web.Application, port: int, address: str | None = None) -> None:
    """Serve on an address, None is all, until cancelled. Raises OSError if the port is taken."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        assert runner.server is not None
        await serve_pages(runner.server, port, address)
    finally:
        await runner.cleanup()


def _verdict(
    request: web.Request, endpoint: str, checks: Sequence[Check], about: Mapping[str, Any]
) -> web.Response:
    """Answer as JSON, or as text with `?verbose`; 503 if a check fails."""
    code = 200 if passed(checks) else 503
    if "verbose" in request.query:
        return web.Response(text=as_lines(endpoint, checks), status=code)
    return web.json_response(as_json(checks, about), status=code)
