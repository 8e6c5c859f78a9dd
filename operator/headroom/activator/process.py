"""The activator process: its ports, its connection to the operator, and its shutdown."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
from dataclasses import dataclass
from pathlib import Path

from aiohttp import ClientSession, web

from headroom.activator.client_tls import ClientTls
from headroom.activator.held_request import Bounds
from headroom.activator.metrics import Metrics
from headroom.activator.operator_client import OperatorClient
from headroom.activator.proxy import HoldingProxy
from headroom.activator.request_buffer import RequestBuffer
from headroom.bounded_listener import serve_pages
from headroom.gateway.activator_messages import Report, Served
from headroom.recent_page import RecentPage

_log = logging.getLogger(__name__)

RECENT_REQUEST_S = 5.0
"""Time for which a service counts as held after a request, even if the request was refused."""
REPORT_AGAIN_S = 1.0
"""Minimum interval between immediate reports for the same service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Address of the operator, own address, and bounds."""

    operator: str
    token_file: Path
    address: str
    """Address at which gateways reach this process."""
    port: int
    """Port of /livez, /readyz and /metrics."""
    bounds: Bounds
    tls: ClientTls | None
    """None only where the operator is reached over loopback, as in tests."""
    drain_s: float
    """Time after SIGTERM until requests that still wait are refused with a Retry-After."""


class Activator:
    """The parts of one activator process."""

    def __init__(self, settings: Settings, session: ClientSession) -> None:
        self._settings = settings
        self._buffer = RequestBuffer(settings.bounds)
        self.metrics = Metrics()
        self._requested_s: dict[str, float] = {}
        self._leaving = False
        self.proxy = HoldingProxy(
            self._buffer, self.metrics, self._on_request, bounds=settings.bounds
        )
        self.client = OperatorClient(
            session,
            settings.operator,
            settings.token_file,
            self._report,
            self.metrics,
            settings.tls,
        )

    async def run(self, until: asyncio.Event) -> None:
        """Hold requests until `until` is set, then drain."""
        parts = [
            asyncio.create_task(self.client.follow(self._served)),
            asyncio.create_task(self.client.report_held()),
            asyncio.create_task(self.proxy.dispatcher.run()),
            asyncio.create_task(self._serve_pages()),
        ]
        end = asyncio.create_task(until.wait())
        try:
            await asyncio.wait([*parts, end], return_when=asyncio.FIRST_COMPLETED)
            if not until.is_set():
                await next(part for part in parts if part.done())
            await self._drain()
        finally:
            await self.proxy.abort()
            for part in (*parts, end):
                part.cancel()
            await asyncio.gather(*parts, end, return_exceptions=True)

    async def _drain(self) -> None:
        """Announce the shutdown to gateways, then wait for held requests or refuse them."""
        self._leaving = True
        self.client.report_now()
        _log.info("shutting down: %d requests are held", self._buffer.requests)
        announce_s = min(ANNOUNCE_S, self._settings.drain_s)
        await asyncio.sleep(announce_s)
        self.proxy.close()
        await self.proxy.wait_idle(self._settings.drain_s - announce_s)
        self.proxy.leave()
        await self.proxy.wait_idle(REFUSE_WITHIN_S)
        _log.info("shut down")

    async def _served(self, services: tuple[Served, ...]) -> None:
        await self.proxy.serve(services, opens=not self._leaving)

    def _on_request(self, key: str) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._requested_s.get(key, -math.inf) >= REPORT_AGAIN_S:
            self._requested_s[key] = now_s
            self.client.report_now()

    def _report(self) -> Report:
        now_s = asyncio.get_running_loop().time()
        self._requested_s = {
            key: at_s for key, at_s in self._requested_s.items() if now_s - at_s < RECENT_REQUEST_S
        }
        held = dict.fromkeys(self._requested_s, 1) | self._buffer.held()
        return Report(
            address=self._settings.address,
            version=self.client.version,
            listening=self.proxy.listening,
            held=tuple(held.items()),
            arrived=tuple(self._buffer.arrived.items()),
            leaving=self._leaving,
        )

    def _metrics_page(self) -> bytes:
        return self.metrics.page(self._buffer.requests, self._buffer.body_bytes)

    async def _serve_pages(self) -> None:
        recent = RecentPage(self._metrics_page)

        async def livez(_: web.Request) -> web.Response:
            return web.json_response({"live": True})

        async def readyz(_: web.Request) -> web.Response:
            ready = self.client.synced and not self._leaving
            return web.json_response({"ready": ready}, status=200 if ready else 503)

        async def metrics(_: web.Request) -> web.Response:
            headers = {"Content-Type": "text/plain; version=0.0.4"}
            return web.Response(body=recent.get(), headers=headers)

        app = web.Application()
        app.add_routes(
            [web.get("/livez", livez), web.get("/readyz", readyz), web.get("/metrics", metrics)]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        try:
            assert runner.server is not None
            await serve_pages(runner.server, self._settings.port, None)
        finally:
            await runner.cleanup()


ANNOUNCE_S = 2.0
"""Time until all gateways know that this activator is shutting down."""
REFUSE_WITHIN_S = 2.0


async def run(settings: Settings) -> None:
    """Hold requests until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with ClientSession() as session:
        await Activator(settings, session).run(stop)
