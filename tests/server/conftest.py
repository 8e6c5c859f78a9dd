"""A model server in this process, stopped after the test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from headroom_server.caching.cache import Cache
from headroom_server.device.startup import WarmUpPlan
from headroom_server.runtime.batching.model_queue import Limits
from headroom_server.runtime.batching.runner import Runner
from headroom_server.runtime.registry import Models
from headroom_server.web.application.app import Application
from support.inside import read_and_checked
from support.server_world import FakeEngine, Start, World, until


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Start a server and wait until it is ready."""
    worlds: list[World] = []

    async def make(
        *,
        max_batch_size: int = 4,
        max_waiting: int = 4,
        stall_timeout_s: float = 60.0,
        cache: Cache | None = None,
        devices: int = 1,
    ) -> World:
        engines = [FakeEngine() for _ in range(devices)]
        runner = Runner(
            "m",
            engines,
            WarmUpPlan(
                max_batch_size=max_batch_size, requests=1, max_latency_s=5.0, timeout_s=30.0
            ),
            Limits(
                max_batch_size=max_batch_size,
                max_waiting=max_waiting,
                stall_timeout_s=stall_timeout_s,
            ),
            cache=cache,
        )
        app = Application(Models.of(runner), max_body_bytes=4096)
        transport = httpx.ASGITransport(app=app)
        http = httpx.AsyncClient(
            transport=transport,
            base_url="http://server",
            event_hooks={"response": [read_and_checked]},
        )
        world = World(app, engines, runner, http)
        worlds.append(world)
        runner.start()
        await until(lambda: runner.ready)
        for engine in engines:
            engine.batches.clear()
        return world

    yield make
    for world in worlds:
        for engine in world.engines:
            engine.free.set()
        world.runner.stop()
        await world.http.aclose()
