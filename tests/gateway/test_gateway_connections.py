"""Connections that are held idle give way to those of other services."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout

from headroom.gateway import Route
from headroom.gateway.bootstrap.overload import CROWDED_IDLE_S
from headroom.gateway.bounds import MAX_CONNECTIONS, SERVICE_CONNECTIONS
from support.fakes_gateway import Gateway, Replica, ok, service, until, url

pytestmark = pytest.mark.clock


@contextmanager
def many_files() -> Iterator[None]:
    """Raise the limit of this process as far as it may be."""
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


def idle(one: Route, count: int) -> list[socket.socket]:
    """Connect so many times; send nothing."""
    return [socket.create_connection(("127.0.0.1", one.port)) for _ in range(count)]


async def test_idle_connections_of_two_services_give_way_to_others(
    front: Gateway, started: list[Replica]
) -> None:
    started.append(await Replica(ok).start())
    first, second = service(name="first"), service(name="second")
    quiet = service(namespace="other")
    routes = (first, second, quiet)
    await front.tell(*routes, replicas={one.key: [started[0].endpoint] for one in routes})

    async def answered() -> bool:
        async with (
            ClientSession(timeout=ClientTimeout(total=2.0)) as client,
            client.get(url(quiet)) as answer,
        ):
            return answer.status == 200

    with many_files():
        held = await asyncio.to_thread(idle, first, SERVICE_CONNECTIONS)
        held += await asyncio.to_thread(idle, second, MAX_CONNECTIONS - SERVICE_CONNECTIONS)
        try:
            with pytest.raises(ClientError):
                await answered()
            await until(answered, "another service has connections again", CROWDED_IDLE_S + 10.0)
        finally:
            for one in held:
                one.close()
