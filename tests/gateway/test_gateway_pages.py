"""The counts of a real gateway are read, and its failure is reported."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from free_ports import free_port
from headroom.adapters.gateways.gateway_scraper import GatewayScraper
from headroom.controller.gather.gateways.gateway_pages import GatewayPages
from headroom.controller.routing.ready_pods import ReadyPod
from headroom.gateway.listener.access_counts import PAGE
from support.fakes_gateway import Replica, gateway, ok, route, until

pytestmark = pytest.mark.clock

POD = ReadyPod(uid="1", name="gateway-0", address="127.0.0.1", restarts=0)


class WallClock:
    def now_s(self) -> float:
        return time.time()


async def test_counts_are_read_until_the_gateway_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with gateway(tmp_path) as front, GatewayScraper(deadline_s=0.5) as scraper:
        replica = await Replica(ok).start()
        canary, one = route(name="canary", port=free_port()), route(port=free_port())
        one = route(port=one.port, split=((canary.key, 100),))
        hosts = {canary.key: [replica.endpoint], one.key: []}
        pages = GatewayPages(scraper, WallClock(), port=front.ops_port)
        assert pages.of(canary.key) is None
        reading = asyncio.create_task(pages.run(lambda: [POD], lambda: 1.0))
        await front.tell(one, canary, replicas=hosts)

        async def received() -> bool:
            tally = pages.of(canary.key)
            return tally is not None and tally.complete

        await until(received, "the gateway's page was read")
        caplog.clear()
        for _ in range(5):
            async with front.client.post(f"http://127.0.0.1:{one.port}/", data=b"x") as answered:
                assert answered.status == 200

        async def counted() -> bool:
            tally = pages.of(canary.key)
            return tally is not None and sum(tally.counted.answered.values()) == 5

        await until(counted, "the requests are counted for whose replicas had them")
        tally = pages.of(one.key)
        assert tally is not None
        assert (tally.counted.arrived, tally.failed) == (0, ())
        front.process.kill()

        async def silent() -> bool:
            tally = pages.of(canary.key)
            return tally is not None and bool(tally.failed)

        await until(silent, "the gateway is silent")
        before = pages.of(canary.key)
        await asyncio.sleep(0.3)
        assert pages.of(canary.key) == before  # it does not age to zero
        said = [one for one in caplog.messages if "its request counts cannot be read" in one]
        assert len(said) == 1
        reading.cancel()
        await replica.stop()


def unread(path: str, port: int, count: int) -> Iterator[socket.socket]:
    """Ask for a page over this many connections from one other address, and never read it."""
    for _ in range(count):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.bind(("127.0.0.9", 0))
        one.connect(("127.0.0.1", port))
        one.send(f"GET {path} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
        yield one


@pytest.mark.parametrize("path", ["/stats/prometheus", PAGE])
async def test_page_of_the_operator_waits_for_no_client_that_does_not_read_its_own(
    tmp_path: Path, path: str
) -> None:
    """300 such connections kept the operator from its page for over ten seconds."""
    async with gateway(tmp_path) as front, GatewayScraper() as scraper:
        routes = [route(name=f"s{number}", port=free_port()) for number in range(60)]
        await front.tell(*routes, replicas={one.key: [] for one in routes})
        with contextlib.ExitStack() as held:
            for one in unread(path, front.ops_port, 300):
                held.enter_context(one)
            for _ in range(3):
                await scraper.scrape(f"http://127.0.0.1:{front.ops_port}{PAGE}")
                async with front.client.get(f"http://127.0.0.1:{front.ops_port}/ready") as ready:
                    assert ready.status == 200


async def test_unfinished_requests_for_pages_end_and_probes_are_answered(tmp_path: Path) -> None:
    async with gateway(tmp_path) as front:
        page = f"http://127.0.0.1:{front.ops_port}"

        async def ready() -> bool:
            async with front.client.get(f"{page}/ready") as answered:
                return answered.status == 200

        await until(ready, "the gateway is ready")
        heads = (b"", b"GET /ready HTTP/1.1\r\n", b"GET /stats/prometheus HTTP/1.1\r\nhost: a\r\n")
        bodies = b"content-length: 1000000\r\n\r\n" + b"x" * 100_000
        held = []
        for head in (*heads, heads[-1] + bodies):
            for _ in range(20):
                reader, writer = await asyncio.open_connection("127.0.0.1", front.ops_port)
                writer.write(head)
                held.append((reader, writer))
        began_s = time.monotonic()
        while time.monotonic() - began_s < 5.0:
            assert await ready()
            await asyncio.sleep(0.5)
        async with asyncio.timeout(15.0):
            for reader, writer in held:
                with contextlib.suppress(ConnectionError):
                    await reader.read()  # to the end of the connection
                writer.close()
