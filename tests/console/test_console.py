"""Serving of the console: its endpoints and addresses, and the bounds on its clients."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from console.running_controllers import controller
from free_ports import free_port
from headroom.bounded_listener import PAGE_CONNECTIONS
from headroom.ops.health import Health
from headroom.ops.operator_metrics import OperatorMetrics
from headroom.ops.server import application, serve

pytestmark = pytest.mark.clock


async def test_clients_that_do_not_read_pages_are_few() -> None:
    """A page of a thousand services has a megabyte."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(body=bytes(8 << 20))

    app = web.Application()
    app.add_routes([web.get("/metrics", page)])
    port = free_port()
    serving = asyncio.create_task(serve(app, port, "127.0.0.1"))
    await asyncio.sleep(0.1)
    kept = 0
    writers = []
    for _ in range(2 * PAGE_CONNECTIONS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writers.append(writer)
        writer.write(b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n")
        with suppress(OSError):
            kept += bool(await reader.read(1))
    assert kept == PAGE_CONNECTIONS // 2
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
    writer.write(b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n")
    assert await reader.readexactly(12) == b"HTTP/1.1 200", "another address"
    for each in (*writers, writer):
        each.transport.abort()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_page_is_rendered_at_most_once_a_second_however_many_ask() -> None:
    """16 connections of one client took the event loop of all evaluations."""

    class Counted(OperatorMetrics):
        pages = 0

        def page(self) -> bytes:
            self.pages += 1
            return super().page()

    instruments = Counted()
    app = application(Health(controller()), instruments)
    async with TestClient(TestServer(app)) as client:
        for _ in range(20):
            assert b"headroom_operator_leader 0.0" in await (await client.get("/metrics")).read()
        assert instruments.pages <= 10  # 20 without a bound; a crowded machine takes seconds
        instruments.led(leading=True, transitions=1)
        await asyncio.sleep(1.1)
        assert b"headroom_operator_leader 1.0" in await (await client.get("/metrics")).read()


async def test_endpoints_are_served() -> None:
    instruments = OperatorMetrics()
    instruments.ticked(seconds=0.01, lag_s=0.0, outcome="ok")
    instruments.called(verb="get", code="200", seconds=0.002)
    app = application(Health(controller()), instruments)
    async with TestClient(TestServer(app)) as client:
        ready = await client.get("/readyz")
        body = await ready.json()
        assert (ready.status, body["status"]) == (503, "failed")
        names = [check["name"] for check in body["checks"]]
        assert names[-2:] == ["services-listed", "credentials"]
        assert body["leadership"] == {"leading": True, "lease": False}
        lines = (await (await client.get("/readyz?verbose")).text()).splitlines()
        assert lines[0].startswith("[-]services-listed failed: InferenceServices are not listed")
        assert lines[-1] == "readyz check failed"
        alive = await client.get("/livez?verbose")
        assert (alive.status, (await alive.text()).splitlines()) == (
            200,
            [
                "[+]schedule ok",
                "[+]overdue ok",
                "[+]event-loop ok",
                "[+]watch ok",
                "livez check passed",
            ],
        )
        page = await (await client.get("/metrics")).text()
    assert 'headroom_operator_ticks_total{outcome="ok"} 1.0' in page
    assert 'headroom_operator_api_requests_total{code="200",verb="get"} 1.0' in page


@pytest.mark.parametrize("address", [None, "127.0.0.1", "::1"])
async def test_pages_are_served_on_every_kind_of_address(address: str | None) -> None:
    port, app = free_port(), application(Health(controller()), OperatorMetrics())
    serving = asyncio.create_task(serve(app, port, address))
    await asyncio.sleep(0.1)
    _, writer = await asyncio.open_connection(address or "127.0.0.1", port)
    writer.close()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_serve_on_taken_port_raises() -> None:
    app = application(Health(controller()), OperatorMetrics())
    async with TestServer(app) as first:
        assert first.port is not None
        second = application(Health(controller()), OperatorMetrics())
        with pytest.raises(OSError, match=r"(?i)address already in use"):
            await serve(second, first.port)
