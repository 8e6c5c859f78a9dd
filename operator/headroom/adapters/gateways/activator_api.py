"""The API for activators: they get the services and report held requests.

`POST /v1/served` is a long poll: answered at once if the activator's version is out of date, else
at the next change, or with 304. `POST /v1/held` reports held requests; `on_held` is called for
services that had none before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable

from aiohttp import web

from headroom.adapters.gateways.activator_access import (
    ActivatorAccess,
    Authenticate,
    Tls,
    is_same_address,
    not_its_address,
)
from headroom.adapters.gateways.activator_reports import ActivatorReports
from headroom.bounded_listener import BoundedListener, listening
from headroom.gateway.activator_messages import (
    ASK_WITHIN_S,
    Report,
    Served,
    read_report,
    services_body,
)

MAX_REPORT_BYTES = 1 << 20
MAX_CONNECTIONS = 32
"""Connections at once, of 300 KiB each, 10 MiB in all. An activator has two, and two more while
certificates change."""


class ActivatorApi:
    """Serves the services to activators and keeps the last report of each."""

    def __init__(
        self,
        authenticate: Authenticate,
        hold_s: float = ASK_WITHIN_S,
        tls: Tls | None = None,
        peer: str = "",
    ) -> None:
        """Serve activators with a valid token and, over mutual TLS, a certificate for `peer`."""
        self._access = ActivatorAccess(authenticate, tls, peer)
        self._tls = tls
        self.listener = BoundedListener(MAX_CONNECTIONS)
        self._hold_s = hold_s
        self._published: tuple[str, bytes] | None = None
        self._news = asyncio.Event()
        self._reports = ActivatorReports()
        self._on_held: Callable[[str], None] = lambda _: None
        self._on_change: Callable[[], None] = lambda: None

    def listen(self, *, on_held: Callable[[str], None], on_change: Callable[[], None]) -> None:
        """Set the callbacks.

        `on_held` gets a service's key when its first request is held; `on_change` is called when
        ports or held requests of activators change.
        """
        self._on_held, self._on_change = on_held, on_change

    def publish(self, services: Iterable[Served], kept: Collection[str] = ()) -> None:
        """Serve these services from now on; others stay if `kept` has their namespace or key."""
        new = services_body(services, kept)
        if new != self._published:
            self._published = new
            self._wake()

    def withdraw(self) -> None:
        """Serve nothing, because another process leads. Activators keep their services."""
        self._published = None
        self._wake()

    def accepting(self, port: int) -> tuple[str, ...]:
        """Return the addresses of the activators that accept requests at a service's port."""
        return self._reports.accepting(port, _now_s())

    def held(self, key: str) -> int:
        """Return the held requests of a service, over all activators."""
        return self._reports.held(key, _now_s())

    def arrived(self, key: str) -> int:
        """Return the requests of a service that activators received since this process began."""
        return self._reports.arrived(key)

    async def serve(self, port: int, host: str | None = None) -> None:
        """Serve until cancelled, from the first certificate on. Raises OSError for a taken port."""
        context = None
        if self._tls is not None:
            await self._tls.wait()
            context = self._tls.ssl_context()
        served = web.Application(client_max_size=MAX_REPORT_BYTES)
        served.add_routes([web.post("/v1/served", self._served), web.post("/v1/held", self._held)])
        runner = web.AppRunner(
            served, access_log=None, shutdown_timeout=0.5, keepalive_timeout=120.0
        )
        await runner.setup()
        try:
            assert runner.server is not None
            await self.listener.serve(listening(port, host), runner.server, context)
        finally:
            await runner.cleanup()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _served(self, request: web.Request) -> web.Response:
        report = await self._receive(request)
        if isinstance(report, web.Response):
            return report
        if self._published is not None and self._published[0] == report.version:
            try:
                async with asyncio.timeout(self._hold_s):
                    await self._news.wait()
            except TimeoutError:
                return web.Response(status=304)
        if self._published is None:
            return _not_leader()
        return web.Response(body=self._published[1], content_type="application/json")

    async def _held(self, request: web.Request) -> web.Response:
        report = await self._receive(request)
        return report if isinstance(report, web.Response) else web.Response(status=204)

    async def _receive(self, request: web.Request) -> Report | web.Response:
        """Record an activator's report; return an error response if it is not authorized."""
        refusal = await self._access.refusal(request)
        if refusal is not None:
            return refusal
        try:
            report = read_report(await request.read())
        except ValueError as error:
            return web.json_response({"error": str(error)}, status=400)
        peer = request.remote or ""
        if not is_same_address(report.address, peer):
            return not_its_address(report.address, peer)
        if self._published is None:
            return _not_leader()
        self._record(report)
        return report

    def _record(self, report: Report) -> None:
        changes = self._reports.record(report, _now_s())
        if changes.changed:
            self._on_change()
        for key in changes.first_held:
            self._on_held(key)


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _not_leader() -> web.Response:
    refusal = web.json_response({"error": "this operator is not the leader"}, status=503)
    refusal.force_close()
    return refusal
