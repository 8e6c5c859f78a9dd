"""Calls to a server over gRPC, which end with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from grpc import aio

from headroom_server.open_inference_grpc.server import Bounds, GrpcServer, served_models
from headroom_server.runtime.registry import Models
from support.grpc_calls import Calls, StartCalls
from support.server_world import Start


@pytest.fixture
async def calls(start: Start) -> AsyncIterator[StartCalls]:
    opened: list[Calls] = []

    async def make(max_message_bytes: int = 4096, **limits: Any) -> Calls:
        world = await start(**limits)
        bounds = Bounds(max_message_bytes=max_message_bytes, max_age_s=60, age_grace_s=60)
        server = GrpcServer(served_models(Models.of(world.runner)), bounds)
        port = await server.start("127.0.0.1", 0)
        target = f"127.0.0.1:{port}"
        opened.append(Calls(world, server, target, aio.insecure_channel(target)))
        return opened[-1]

    yield make
    for one in opened:
        await one.channel.close()
        await one.server.stop()
