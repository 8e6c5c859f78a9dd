"""Connections that are held idle give way to those of other clients and services."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import pytest
from aiohttp import ClientSession, ClientTimeout

from headroom.gateway import Route
from headroom.gateway.bounds import MAX_CONNECTIONS, SERVICE_CONNECTIONS
from headroom.gateway.listener.listeners import HEADERS_WITHIN_S
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
def held(*counts: tuple[Route, int], sent: bytes = b"") -> Iterator[None]:
    """Connect this many times, and send this and nothing more."""
    with many_files():
        opened = [
            socket.create_connection(("127.0.0.1", one.port))
            for one, count in counts
            for _ in range(count)
        ]
        try:
            for one in opened:
                with suppress(OSError):  # beyond the bound
                    one.sendall(sent)
            yield
        finally:
            for one in opened:
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

    with held((first, counts[0]), (second, counts[1])):
        opened_s = time.monotonic()
        for one in routes:
            left_s = GIVE_WAY_WITHIN_S - (time.monotonic() - opened_s)
            await until(partial(answered, one), f"{one.key} has connections again", left_s)


async def test_requests_that_one_client_only_begins_give_way_within_seconds(
    front: Gateway, started: list[Replica]
) -> None:
    """They locked the service's other clients out for ten seconds."""
    started.append(await Replica(ok).start())
    one = service()
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    with held((one, SERVICE_CONNECTIONS), sent=b"GET / HTTP/1.1\r\nhost: a\r\n"):
        within_s = HEADERS_WITHIN_S + GIVE_WAY_WITHIN_S
        await until(partial(answered, one), "it has connections again", within_s)
