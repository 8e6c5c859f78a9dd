"""Read the gateways' counters: one page of each gateway for all services."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Protocol

from headroom.controller.gather.gateways.gateway_counters import GatewayCounters, ServiceTotals
from headroom.controller.ports import Clock
from headroom.errors import ScrapeFailed
from headroom.gateway.bootstrap.configuration import OPS_PORT
from headroom.gateway.listener.access_counts import PAGE, read

_log = logging.getLogger(__name__)

EVERY_S = 2.0


class Gateway(Protocol):
    """A gateway's pod."""

    @property
    def uid(self) -> str:
        """Identifier of the pod and its restarts."""
        ...

    @property
    def name(self) -> str:
        """Name in messages."""
        ...

    @property
    def address(self) -> str:
        """URL of its counters."""
        ...


class Pages(Protocol):
    """Fetches pages."""

    async def scrape(self, url: str) -> str:
        """Fetch a page within a deadline; raise `headroom.errors.ScrapeFailed`."""
        ...


class GatewayPages:
    """Keeps the counters of the gateways up to date, while it runs."""

    def __init__(self, pages: Pages, clock: Clock, port: int = OPS_PORT) -> None:
        self._pages = pages
        self._clock = clock
        self._port = port
        self._counters = GatewayCounters()
        self._complaints: dict[str, str] = {}

    def of(self, key: str) -> ServiceTotals | None:
        """Return the gateways' counts of `namespace/name`; None where there is no gateway."""
        return self._counters.of(key)

    async def run(
        self,
        gateways: Callable[[], Collection[Gateway]],
        every_s: Callable[[], float],
    ) -> None:
        """Read until cancelled; earlier counts stay."""
        while True:
            pods = {f"{pod.name} {pod.uid}": pod for pod in gateways()}
            self._counters.set_gateways(pods.keys(), self._clock.now_s())
            await asyncio.gather(*(self._read(name, pod) for name, pod in pods.items()))
            await asyncio.sleep(every_s())

    async def _read(self, gateway: str, pod: Gateway) -> None:
        host = f"[{pod.address}]" if ":" in pod.address else pod.address
        try:
            page = await self._pages.scrape(f"http://{host}:{self._port}{PAGE}")
            now_s = self._clock.now_s()
            self._counters.add_page(gateway, await asyncio.to_thread(read, page), now_s)
            self._complaints.pop(gateway, None)
        except (ScrapeFailed, ValueError) as error:
            self._counters.mark_failed(gateway, str(error))
            if self._complaints.get(gateway) != str(error):
                self._complaints[gateway] = str(error)
                _log.warning("gateway %s: its request counts cannot be read: %s", pod.name, error)
