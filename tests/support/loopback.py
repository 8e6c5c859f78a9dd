"""An HTTP server in this process, on loopback, for as long as a block runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def on_loopback(
    answer: Handler, *, method: str = "*", path: str = "/{path:.*}"
) -> AsyncIterator[str]:
    """Answer requests of this method to this path, by default all; yield the URL of the server."""
    app = web.Application()
    app.router.add_route(method, path, answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
