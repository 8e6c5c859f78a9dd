"""A client that resets its requests at once takes little of the thread that serves everybody."""

from __future__ import annotations

import asyncio

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


async def _refused(front: Gateway, one: Route) -> int:
    """Return how many requests of a service got an answer of 400 or above."""
    name = f"http.{one.key}.downstream_rq_4xx"
    admin = f"http://127.0.0.1:{front.admin_port}/stats?filter={name}"
    async with front.client.get(admin) as page:
        return int((await page.text()).rpartition(":")[2])
