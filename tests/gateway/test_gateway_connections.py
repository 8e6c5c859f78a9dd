"""Connections that are held idle give way to those of other clients and services."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from aiohttp import ClientSession, ClientTimeout

from headroom.gateway import Route
from headroom.gateway.bounds import MAX_CONNECTIONS, SERVICE_CONNECTIONS
from support.fakes_gateway import Gateway, Replica, ok, service, until, url

pytestmark = pytest.mark.clock

GIVE_WAY_WITHIN_S = 3.0
"""The second of `overload.CROWDED_IDLE_S`, and what a busy machine adds."""


@contextmanager
def many_files() -> Iterator[None]:
    """Raise the limit of this process as far as it may be."""
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


@contextmanager
def idle(*counts: tuple[Route, int]) -> Iterator[None]:
    """Connect so many times, and send nothing."""
    with many_files():
        held = [
            socket.create_connection(("127.0.0.1", one.port))
            for one, count in counts
            for _ in range(count)
        ]
        try:
            yield
        finally:
            for one in held:
                one.close()


async def answered(one: Route) -> bool:
    """Ask over a new connection."""
    async with (
        ClientSession(timeout=ClientTimeout(total=2.0)) as client,
        client.get(url(one)) as answer,
    ):
        return answer.status == 200


@pytest.mark.parametrize(
    "counts",
    [(SERVICE_CONNECTIONS, 0), (SERVICE_CONNECTIONS, MAX_CONNECTIONS - SERVICE_CONNECTIONS)],
    ids=["all of a service", "all of the gateway"],
)
async def test_idle_connections_of_one_client_give_way_within_seconds(
    front: Gateway, started: list[Replica], counts: tuple[int, int]
) -> None:
    started.append(await Replica(ok).start())
    first, second = service(name="first"), service(name="second")
    quiet = service(namespace="other")
    routes = (first, second, quiet)
    await front.tell(*routes, replicas={one.key: [started[0].endpoint] for one in routes})

    with idle((first, counts[0]), (second, counts[1])):
        opened_s = time.monotonic()
        for one in routes:
            left_s = GIVE_WAY_WITHIN_S - (time.monotonic() - opened_s)
            await until(partial(answered, one), f"{one.key} has connections again", left_s)
