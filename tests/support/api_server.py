"""An API server over HTTP for commands: objects by path, and a kubeconfig that leads to it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web


@dataclass
class ApiServer:
    """Answers a path with its object, else 404 in the API server's words."""

    objects: dict[str, Any] = field(default_factory=dict)
    pages: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Answers that are no JSON, by path: status and text."""
    lacking: set[tuple[str, str]] = field(default_factory=set)
    """(verb, resource with subresource) that reviews deny."""
    url: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        path = request.path
        if request.method == "POST":
            return web.json_response(self._review(await request.json()), status=201)
        if path in self.pages:
            status, text = self.pages[path]
            return web.Response(status=status, text=text)
        if path in self.objects:
            return web.json_response(self.objects[path])
        said = {"kind": "Status", "reason": "NotFound", "message": f"{path} not found"}
        return web.json_response(said, status=404)

    def _review(self, review: Mapping[str, Any]) -> dict[str, Any]:
        asked = review["spec"]["resourceAttributes"]
        resource = "/".join(asked[key] for key in ("resource", "subresource") if key in asked)
        return {**review, "status": {"allowed": (asked["verb"], resource) not in self.lacking}}

    def kubeconfig(self, path: Path, namespace: str = "vision") -> str:
        """Write a kubeconfig whose context means this server and a namespace."""
        context = {"cluster": "c", "user": "u", "namespace": namespace}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "users": [{"name": "u", "user": {"token": "secret"}}],
            "contexts": [{"name": "x", "context": context}],
            "current-context": "x",
        }
        path.write_text(json.dumps(config), encoding="utf-8")
        return str(path)


@contextmanager
def serving(server: ApiServer) -> Iterator[ApiServer]:
    """Serve in a thread of its own: a command runs an event loop itself."""
    loop = asyncio.new_event_loop()
    started = threading.Event()

    async def begin() -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", server.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}"
        return runner

    def run() -> None:
        runner = loop.run_until_complete(begin())
        started.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run, name="api-server")
    thread.start()
    try:
        assert started.wait(10.0)
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10.0)
