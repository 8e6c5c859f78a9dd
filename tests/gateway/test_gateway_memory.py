"""Every connection that a gateway admits, at its worst cost, in a memory cgroup of shipped size."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from headroom.controller.routing.gateway_room import MOST_BYTES
from headroom.controller.routing.paced_routes import CHANGED_BYTES
from headroom.gateway import Endpoint, Route
from headroom.gateway.bounds import (
    BUFFERED_BYTES,
    BYTES_PER_CONFIGURED,
    IDLE_BYTES,
    MAX_ANSWER_HEADERS_KIB,
    MAX_CONNECTIONS,
    SERVICE_CONNECTIONS,
    STREAMS_PER_CONNECTION,
    WORST_BYTES,
)
from headroom.gateway.built_routes import build
from headroom.gateway.listener.listeners import READ_WITHIN_S
from headroom.gateway.values import RequestClass, TenantLimit
from reliability.attacks import hostile_client
from reliability.attacks.grpc_payloads import END_HEADERS, END_STREAM, PREFACE, Kind, frame
from reliability.testbed.memory_cgroup import bytes_of, memory_cgroup
from support.fakes_gateway import Gateway, Replica, gateway, ok, service, until, url

pytestmark = pytest.mark.clock

ROOT = Path(__file__).parents[2]
WORST_SEGMENT = 520
"""More than the 512 bytes up to which Envoy copies a segment behind the last one."""
PATIENCE_S = 240.0
UNFINISHED = BUFFERED_BYTES - 1
KERNEL_BYTES = 2 * 2 * (16 << 10)
"""Receive and send buffers, doubled by the kernel; a cgroup of version 1 does not count them."""


def shipped_bytes() -> int:
    """Return the memory limit of the container `envoy`."""
    manifest = ROOT / "deploy" / "components" / "gateway" / "gateway.yaml"
    (limit,) = (
        container["resources"]["limits"]["memory"]
        for one in yaml.safe_load_all(manifest.read_text())
        if one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
        if container["name"] == "envoy"
    )
    return bytes_of(limit)


@contextmanager
def attacking(one: Route, count: int, said: Path) -> Iterator[None]:
    """Hold this many unfinished uploads open."""
    head = f"POST / HTTP/1.1\\r\\nhost: a\\r\\ncontent-length: {BUFFERED_BYTES}\\r\\n\\r\\n"
    words = [sys.executable, "-m", hostile_client.__name__, str(one.port), "--head", head]
    words += ["--count", str(count), "--body", str(UNFINISHED), "--segment", str(WORST_SEGMENT)]
    words += ["--gap", "0.3", "--seconds", "600", "--again"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "e2e")}
    with said.open("wb") as lines:
        attacker = subprocess.Popen(words, stdout=lines, env=environment)
    try:
        yield
    finally:
        attacker.kill()
        attacker.wait()


def sent(said: Path) -> int:
    """Return how many connections of an attacker have sent all they will."""
    lines = said.read_text().splitlines()
    last = json.loads(lines[-1]) if lines else {}
    sent: int = last.get("sent", 0)
    return sent


async def held(front: Gateway, one: Route) -> int:
    """Return the connections that the gateway holds of a service."""
    name = f"http.{one.key}.downstream_cx_active"
    admin = f"http://127.0.0.1:{front.admin_port}/stats?filter={name}"
    async with front.client.get(admin) as page:
        return int((await page.text()).rpartition(":")[2])


def ask(kept: HTTPConnection) -> int:
    """Send a request over a connection that was open before."""
    kept.request("POST", "/", body=b"x")
    answered = kept.getresponse()
    answered.read()
    return answered.status


ANSWER_HEAD = b"".join(b"h%d: %b\r\n" % (number, b"x" * 70) for number in range(95))
REQUEST_HEAD = b"".join(b"h%d: %b\r\n" % (number, b"x" * 370) for number in range(40))
"""Nearly as much as is taken."""
UNREAD = 200


@pytest.mark.parametrize("tenants", [None, TenantLimit(header="x-tenant", in_flight_percent=100)])
async def test_unread_answer_costs_no_more_than_the_bounds_assume(
    front: Gateway, tenants: TenantLimit | None
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            await reader.readuntil(b"\r\n\r\n")
            long = b"content-length: 9000000\r\n\r\n" + bytes(9_000_000)
            writer.write(b"HTTP/1.1 200 OK\r\n" + ANSWER_HEAD + long)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.sleep(PATIENCE_S)

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=UNREAD)
    one = service(tenants=tenants)
    replica = Endpoint("127.0.0.1", server.sockets[0].getsockname()[1])
    await front.tell(one, replicas={one.key: [replica]}, bound=10 * UNREAD)
    before = resident_bytes(front.process.pid)
    head = b"POST / HTTP/1.1\r\nhost: a\r\n%bcontent-length: 1000000\r\n\r\n" % REQUEST_HEAD
    clients = [await asyncio.to_thread(unread, one.port, head) for _ in range(UNREAD)]
    for _ in range(60):
        for client in clients:
            with suppress(BlockingIOError):
                client.send(bytes(WORST_SEGMENT))
        await asyncio.sleep(0.02)

    async def all_in_flight() -> bool:
        hosts = (
            f"http://127.0.0.1:{front.admin_port}/stats?filter=cluster.{one.key}.upstream_rq_act"
        )
        async with front.client.get(hosts) as page:
            return f": {UNREAD}" in await page.text()

    await until(all_in_flight, "all requests are in flight")
    await asyncio.sleep(1.0)
    cost = (resident_bytes(front.process.pid) - before) / UNREAD
    for client in clients:
        client.close()
    server.close()
    assert 50_000 < cost <= WORST_BYTES


async def test_answer_with_larger_headers_is_refused(
    front: Gateway, started: list[Replica]
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(headers={"x-size": "x" * int(request.headers["x-size"])})

    started.append(await Replica(answer).start())
    one = service()
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    most = MAX_ANSWER_HEADERS_KIB << 10
    for size, status in ((most - 500, 200), (most + 500, 503)):
        async with front.client.get(url(one), headers={"x-size": f"{size}"}) as answered:
            assert answered.status == status


HTTP2_CONNECTIONS = 120
SMALL_LIMIT = 256 << 20


async def test_unread_answers_of_http2_leave_a_gateway_its_memory(tmp_path: Path) -> None:
    """Streams with 15 KB of headers and a window of 0 take 50 kB each: 600 MB at 120 x 100."""
    replica = await Replica(ok).start()
    attacked, quiet = service(grpc_port=1), service(name="quiet")
    hosts = {one.key: [replica.endpoint] for one in (attacked, quiet)}
    fields = {b":method": b"GET", b":path": b"/", b":scheme": b"http", b":authority": b"a"}
    fields |= {b"h%d" % number: b"x" * 120 for number in range(90)}
    head = b"".join(
        b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
        for name, value in fields.items()
    )
    no_window = frame(Kind.SETTINGS, 0, 0, (4).to_bytes(2, "big") + (0).to_bytes(4, "big"))
    streams = b"".join(
        frame(Kind.HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, head)
        for number in range(STREAMS_PER_CONNECTION)
    )
    async with gateway(tmp_path, heap_bytes=SMALL_LIMIT) as front:
        await front.tell(attacked, quiet, replicas=hosts)
        before = resident_bytes(front.process.pid)
        clients = []
        for _ in range(HTTP2_CONNECTIONS):
            with suppress(OSError):
                client = await asyncio.open_connection("127.0.0.1", attacked.port)
                clients.append(client)
                client[1].write(PREFACE + no_window + streams)
        for _ in range(20):
            async with front.client.get(url(quiet)) as answered:
                assert answered.status == 200
            await asyncio.sleep(0.1)
        assert resident_bytes(front.process.pid) <= before + SMALL_LIMIT
        name = f"http.{attacked.key}.downstream_rq_active"

        async def ended() -> bool:
            admin = f"http://127.0.0.1:{front.admin_port}/stats?filter={name}"
            async with front.client.get(admin) as page:
                return (await page.text()).strip() == f"{name}: 0"

        assert not await ended()
        await until(ended, "unread answers have ended", READ_WITHIN_S + 10.0)
        for _, writer in clients:
            writer.close()
    await replica.stop()


def unread(port: int, head: bytes) -> socket.socket:
    """Send a request; never read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.connect(("127.0.0.1", port))
    client.setblocking(False)
    client.send(head)
    return client


def resident_bytes(pid: int) -> int:
    (line,) = (
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    )
    return int(line.split()[1]) << 10


def test_all_connections_and_configurations_at_their_worst_cost_fit_the_shipped_limit() -> None:
    configured = (MOST_BYTES + CHANGED_BYTES) * BYTES_PER_CONFIGURED
    connections = MAX_CONNECTIONS * (WORST_BYTES + KERNEL_BYTES)
    assert IDLE_BYTES + configured + connections <= shipped_bytes()


CLASSES = tuple(RequestClass(name=f"c{one}", priority=1, deadline_s=1.0) for one in range(8))
TENANTS = TenantLimit(header="x-tenant", rate_rps=100, burst=10, in_flight_percent=25)


@pytest.mark.parametrize(
    ("services", "settings"),
    [(150, {}), (20, {"classes": CLASSES, "tenants": TENANTS, "grpc_port": 1})],
    ids=["usual", "large"],
)
async def test_configuration_costs_no_more_than_the_bounds_assume(
    front: Gateway, services: int, settings: dict[str, object]
) -> None:
    routes = [service(name=f"m{number}", **settings) for number in range(services)]
    hosts = {one.key: [Endpoint("127.0.0.1", 9)] for one in routes}
    await front.tell(*routes, replicas=hosts)
    configured = sum(build(one).size for one in routes)
    resident = resident_bytes(front.process.pid)
    assert configured < resident <= IDLE_BYTES + configured * BYTES_PER_CONFIGURED


async def test_all_admitted_connections_at_their_worst_fit_the_shipped_limit(
    tmp_path: Path,
) -> None:
    replica = await Replica(ok).start()
    attacked, other, quiet = (service(name=name) for name in ("attacked", "other", "quiet"))
    hosts = {one.key: [replica.endpoint] for one in (attacked, other, quiet)}
    said = tmp_path / "attacked", tmp_path / "other"
    with memory_cgroup(shipped_bytes()) as limited:
        async with gateway(tmp_path, prefix=limited.prefix) as front:
            await front.tell(attacked, other, quiet, replicas=hosts)
            with (
                closing(HTTPConnection("127.0.0.1", quiet.port, timeout=10.0)) as kept,
                attacking(attacked, SERVICE_CONNECTIONS + 5, said[0]),
                attacking(other, MAX_CONNECTIONS - SERVICE_CONNECTIONS, said[1]),
            ):

                async def full() -> bool:
                    assert await asyncio.to_thread(ask, kept) == 200  # else it ends as idle
                    first, second = await held(front, attacked), await held(front, other)
                    return (
                        first >= 0.99 * SERVICE_CONNECTIONS
                        and first + second >= 0.99 * MAX_CONNECTIONS
                        and sent(said[0]) >= 0.95 * SERVICE_CONNECTIONS
                    )

                await asyncio.to_thread(kept.connect)
                await until(full, "all connections are taken, at their worst cost", PATIENCE_S)
                for _ in range(20):
                    assert await asyncio.to_thread(ask, kept) == 200
                resident = limited.peak_bytes(front.process.pid)
            assert front.process.poll() is None
    await replica.stop()
    assert resident + MAX_CONNECTIONS * KERNEL_BYTES <= shipped_bytes(), resident
