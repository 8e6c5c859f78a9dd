"""`python -m reliability.scale_1000.fake_pods`: one process serves the telemetry of every pod.

It prints its port. A pod's page is that of a server that answers evenly since it was first asked;
the model's name follows from the address. HTTP is as little as a scraper needs: requests without a
body, one after the other.
"""

from __future__ import annotations

import asyncio
import sys
import time
from functools import lru_cache

from reliability.scale_1000.addresses import service_at, service_name
from reliability.testbed.exporter import page

RATE_RPS = 2.0
"""Requests that each pod answers per second: a quarter of what it carries."""
_MODEL = "@"


class PodPages:
    """Renders the pages. A pod serves from when it is first asked, its counters at zero."""

    def __init__(self) -> None:
        self._begun_s: dict[str, float] = {}

    def page(self, address: str) -> bytes:
        """Return the current page of the pod at the address."""
        now_s = time.monotonic()
        served = int((now_s - self._begun_s.setdefault(address, now_s)) * RATE_RPS)
        name = service_name(service_at(address))
        return _template(served).replace(_MODEL.encode(), name.encode())


@lru_cache(maxsize=4096)
def _template(served: int) -> bytes:
    """Pages of pods that have answered as many differ by the model's name alone."""
    return page(_MODEL, served=served).encode()


class Connection(asyncio.Protocol):
    """One kept connection of a scraper."""

    def __init__(self, pages: PodPages) -> None:
        self._pages = pages
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
            body = self._pages.page(self._address)
            head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
            head += f"Content-Length: {len(body)}\r\n\r\n"
            self._transport.write(head.encode() + body)


async def main() -> None:
    """Answer until killed."""
    pages, loop = PodPages(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(pages), "0.0.0.0", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
