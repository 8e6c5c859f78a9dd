"""Order in which a gateway gets a new service: it must have the replicas before it listens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest

from free_ports import free_port
from headroom.adapters.gateways.xds_server import XdsServer
from headroom.adapters.gateways.xds_server.messages import METHOD
from headroom.gateway import Endpoint, snapshot
from headroom.gateway.snapshot import KINDS
from support.fakes_gateway import TOKEN, authenticate, route

pytestmark = pytest.mark.clock

REPLICAS = {"vision/resnet50": [Endpoint("10.0.0.1", 8000)]}


class Client:
    """Speaks as a gateway does, as slowly as a test wants."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._received: asyncio.Queue[str] = asyncio.Queue()

    async def listen(self) -> None:
        """Note the kind of each message."""
        async for message in self._call:
            self._received.put_nowait(
                next(kind for kind, url in KINDS.items() if url.encode() in message)
            )

    async def ask(self, kind: str, *names: str) -> None:
        """Send a DeltaDiscoveryRequest: fields 2 (type_url) and 3 (resource_names_subscribe)."""
        fields = [(0x12, KINDS[kind]), *((0x1A, name) for name in names)]
        await self._call.write(
            b"".join(bytes([tag, len(text)]) + text.encode() for tag, text in fields)
        )

    async def received(self, count: int) -> list[str]:
        """Return the kinds of the next messages."""
        async with asyncio.timeout(20.0):
            return [await self._received.get() for _ in range(count)]

    async def has_no_more_messages(self) -> bool:
        """Wait for a moment."""
        await asyncio.sleep(0.5)
        return self._received.empty()


@contextlib.asynccontextmanager
async def connected(xds: XdsServer) -> AsyncIterator[Client]:
    port = free_port()
    tasks = [asyncio.create_task(xds.serve(port, "127.0.0.1"))]
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await channel.channel_ready()
            metadata = (("authorization", f"Bearer {TOKEN}"),)
            client = Client(channel.stream_stream(METHOD)(metadata=metadata))
            tasks.append(asyncio.create_task(client.listen()))
            yield client
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_listener_of_a_new_service_follows_its_endpoints() -> None:
    xds = XdsServer(authenticate)
    xds.publish(snapshot([route()], REPLICAS, {}))
    async with connected(xds) as client:
        await client.ask("listeners")
        await client.ask("clusters")
        assert await client.received(1) == ["clusters"]
        assert await client.has_no_more_messages()
        await client.ask("endpoints", "vision/resnet50")
        assert await client.received(2) == ["endpoints", "listeners"]


async def test_listener_that_leads_to_another_service_waits_for_its_endpoints_too() -> None:
    canary, stable = route(name="canary", port=20002), route(split=(("vision/canary", 5),))
    xds = XdsServer(authenticate)
    xds.publish(snapshot([stable, canary], REPLICAS, {}))
    async with connected(xds) as client:
        for kind in ("listeners", "clusters"):
            await client.ask(kind)
        await client.ask("endpoints", "vision/resnet50")
        assert await client.received(2) == ["clusters", "endpoints"]
        assert await client.has_no_more_messages()
        await client.ask("endpoints", "vision/canary")
        assert await client.received(2) == ["endpoints", "listeners"]
