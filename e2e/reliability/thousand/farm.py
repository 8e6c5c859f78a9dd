"""`python -m reliability.thousand.farm`: one process that answers the telemetry of every pod.

It prints its port. A pod's page is that of a server that has answered evenly since the process
began; the model's name follows from the address that was asked. HTTP is as little as a scraper
needs: requests without a body, one after the other.
"""

from __future__ import annotations

import asyncio
import sys
import time

from reliability.exporter import page
from reliability.thousand.addresses import service_at, service_name

RATE_RPS = 2.0
"""Requests that each pod answers per second: a quarter of what it carries."""
_MODEL = "@"
_PAGES_PER_S = 10
"""Pages of the same tenth of a second differ by the model's name alone."""


class Farm:
    """Renders the pages."""

    def __init__(self) -> None:
        self._begun_s = time.monotonic()
        self._moment = -1
        self._template = b""

    def page(self, address: str) -> bytes:
        """Give what the pod at the address says now."""
        moment = int((time.monotonic() - self._begun_s) * _PAGES_PER_S)
        if moment != self._moment:
            self._moment = moment
            served = int(moment / _PAGES_PER_S * RATE_RPS)
            self._template = page(_MODEL, served=served).encode()
        return self._template.replace(_MODEL.encode(), service_name(service_at(address)).encode())


class Connection(asyncio.Protocol):
    """One kept connection of a scraper."""

    def __init__(self, farm: Farm) -> None:
        self._farm = farm
        self._asked = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember which pod this is."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._address: str = transport.get_extra_info("sockname")[0]

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        *whole, self._asked = (self._asked + data).split(b"\r\n\r\n")
        for _ in whole:
            body = self._farm.page(self._address)
            head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
            head += f"Content-Length: {len(body)}\r\n\r\n"
            self._transport.write(head.encode() + body)


async def main() -> None:
    """Answer until killed."""
    farm, loop = Farm(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(farm), "0.0.0.0", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
