"""One client's requests take little of the thread that serves all clients."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headroom.gateway import Route
from reliability.attacks.grpc_payloads import END_HEADERS, END_STREAM, PREFACE, Kind, frame
from support.fakes_gateway import Gateway, Replica, ok, service, url

pytestmark = pytest.mark.clock

POST = b"\x83\x86\x84\x41\x01a"
"""`POST http://a/`, compressed. It announces no length, so the gateway itself answers it."""
CANCEL = (8).to_bytes(4, "big")
RESETS = 400
"""Below the 500 after which Envoy looks at how many a connection has reset."""


async def test_requests_that_are_reset_at_once_are_not_processed(
    front: Gateway, started: list[Replica]
) -> None:
    """Else all of one read are, before any other connection has its turn.

    So 20 connections held the gateway's thread for 0.4 to 2.6 s.
    """
    started.append(await Replica(ok).start())
    attacked, quiet = service(grpc_port=1), service(name="quiet")
    hosts = {one.key: [started[0].endpoint] for one in (attacked, quiet)}
    await front.tell(attacked, quiet, replicas=hosts)
    reader, writer = await asyncio.open_connection("127.0.0.1", attacked.port)
    writer.write(PREFACE + frame(Kind.SETTINGS, 0, 0))
    await reader.readexactly(9)
    writer.write(
        b"".join(
            frame(Kind.HEADERS, END_HEADERS | END_STREAM, number, POST)
            + frame(Kind.RESET, 0, number, CANCEL)
            for number in range(1, 2 * RESETS, 2)
        )
    )
    async with front.client.get(url(quiet)) as answered:
        assert answered.status == 200
    assert await _refused(front, attacked) <= RESETS // 20
    writer.close()


LONG_PATH = "/v2/models/" + 3950 * "m."
"""Path of the greatest length that the replica of these tests takes."""
MODELS = 16
ASKED = 20


async def test_long_path_costs_little_more_where_models_lead_to_other_services(
    front: Gateway, started: list[Replica]
) -> None:
    """Each of the patterns read all of it: 8 ms, where a usual request takes 0.4."""
    started.append(await Replica(ok).start())
    other = service(name="other")
    names = [f"{'m.' * 60}{number}" for number in range(MODELS)]
    one = service(models=tuple((name, other.key) for name in names))
    hosts = {each.key: [started[0].endpoint] for each in (one, other)}
    await front.tell(one, other, replicas=hosts)
    for path in (LONG_PATH, "/"):  # once for the connection
        assert await _ask(front, one, path) == 200
    usual_s, long_s = [await _taken_s(front, one, path) for path in ("/", LONG_PATH)]
    assert long_s <= 8.0 * usual_s


async def _taken_s(front: Gateway, one: Route, path: str) -> float:
    """Return the CPU time that requests with a path take of the gateway."""
    before_s = _cpu_s(front)
    for _ in range(ASKED):
        assert await _ask(front, one, path) == 200
    return _cpu_s(front) - before_s


async def _ask(front: Gateway, one: Route, path: str) -> int:
    async with front.client.get(url(one, path)) as answered:
        await answered.read()
        return answered.status


def _cpu_s(front: Gateway) -> float:
    """Return the CPU time of the threads that serve requests."""
    threads = Path(f"/proc/{front.process.pid}/task").iterdir()
    workers = [one for one in threads if (one / "comm").read_text().startswith("wrk")]
    return sum(int((one / "schedstat").read_text().split()[0]) for one in workers) / 1e9


async def _refused(front: Gateway, one: Route) -> int:
    """Return how many requests of a service got an answer of 400 or above."""
    name = f"http.{one.key}.downstream_rq_4xx"
    admin = f"http://127.0.0.1:{front.admin_port}/stats?filter={name}"
    async with front.client.get(admin) as page:
        return int((await page.text()).rpartition(":")[2])
