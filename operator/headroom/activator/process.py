"""The activator as a process: its ports, its two calls to the operator, and its end."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
from dataclasses import dataclass
from pathlib import Path

from aiohttp import ClientSession, web

from headroom.activator.door import Door
from headroom.activator.holding import Bounds, Holding
from headroom.activator.link import Link
from headroom.activator.metrics import Metrics
from headroom.gateway.activation import Report, Served

_log = logging.getLogger(__name__)

KNOCK_LASTS_S = 5.0
"""A service that was knocked at counts as held for so long, also where the request was refused."""
KNOCK_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the operator is, who this is, and what is held at most."""

    operator: str
    token_file: Path
    address: str
    """At which gateways reach this process."""
    port: int
    """Of /livez, /readyz and /metrics."""
    bounds: Bounds
    drain_s: float
    """After SIGTERM: whoever still waits then is told when to come back."""


class Activator:
    """One process."""

    def __init__(self, settings: Settings, session: ClientSession) -> None:
        self._settings = settings
        self._holding = Holding(settings.bounds)
        self.metrics = Metrics()
        self._knocks_s: dict[str, float] = {}
        self._leaving = False
        self.door = Door(self._holding, self.metrics, self._knocked)
        self.link = Link(
            session, settings.operator, settings.token_file, self._report, self.metrics
        )

    async def run(self, until: asyncio.Event) -> None:
        """Hold requests until told to end, then until nobody is inside or the time is over."""
        parts = [
            asyncio.create_task(self.link.follow(self._served)),
            asyncio.create_task(self.link.wake()),
            asyncio.create_task(self.door.turns.look()),
            asyncio.create_task(self._serve_pages()),
        ]
        end = asyncio.create_task(until.wait())
        try:
            await asyncio.wait([*parts, end], return_when=asyncio.FIRST_COMPLETED)
            if not until.is_set():
                await next(part for part in parts if part.done())
            await self._drain()
        finally:
            await self.door.shut()
            for part in (*parts, end):
                part.cancel()
            await asyncio.gather(*parts, end, return_exceptions=True)

    async def _drain(self) -> None:
        """Have gateways go elsewhere; answer whoever is inside, in time or with when to come."""
        self._leaving = True
        self.link.knock()
        _log.info("ending: %d requests are held", self._holding.requests)
        elsewhere_s = min(ELSEWHERE_S, self._settings.drain_s)
        await asyncio.sleep(elsewhere_s)
        self.door.close()
        await self.door.emptied(self._settings.drain_s - elsewhere_s)
        self.door.leave()
        await self.door.emptied(LAST_WORDS_S)
        _log.info("ended")

    async def _served(self, services: tuple[Served, ...]) -> None:
        await self.door.serve(services, opens=not self._leaving)

    def _knocked(self, key: str) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._knocks_s.get(key, -math.inf) >= KNOCK_AGAIN_S:
            self._knocks_s[key] = now_s
            self.link.knock()

    def _report(self) -> Report:
        now_s = asyncio.get_running_loop().time()
        self._knocks_s = {
            key: at_s for key, at_s in self._knocks_s.items() if now_s - at_s < KNOCK_LASTS_S
        }
        held = dict.fromkeys(self._knocks_s, 1) | self._holding.held()
        return Report(
            address=self._settings.address,
            version=self.link.version,
            listening=self.door.listening,
            held=tuple(held.items()),
            arrived=tuple(self._holding.arrived.items()),
            leaving=self._leaving,
        )

    async def _serve_pages(self) -> None:
        async def livez(_: web.Request) -> web.Response:
            return web.json_response({"live": True})

        async def readyz(_: web.Request) -> web.Response:
            ready = self.link.told and not self._leaving
            return web.json_response({"ready": ready}, status=200 if ready else 503)

        async def metrics(_: web.Request) -> web.Response:
            holding = self._holding
            page = self.metrics.page(holding.requests, holding.body_bytes)
            return web.Response(body=page, headers={"Content-Type": "text/plain; version=0.0.4"})

        app = web.Application()
        app.add_routes(
            [web.get("/livez", livez), web.get("/readyz", readyz), web.get("/metrics", metrics)]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        try:
            await web.TCPSite(runner, port=self._settings.port).start()
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()


ELSEWHERE_S = 2.0
"""Within which gateways have heard that this activator leaves."""
LAST_WORDS_S = 2.0


async def run(settings: Settings) -> None:
    """Hold requests until SIGTERM or SIGINT."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    async with ClientSession() as session:
        await Activator(settings, session).run(told)
