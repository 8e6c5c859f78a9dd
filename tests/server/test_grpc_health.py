"""grpc.health.v1 as bytes: what a probe sends and reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from grpc import aio

from headroom_server.open_inference_grpc.server import served_models, served_text
from headroom_server.runtime.registry import Models
from headroom_server.web.shared_bound import SharedBound
from support.generation_front import front
from support.grpc_streams import StreamClient, streams_of
from support.server_world import Start

pytestmark = pytest.mark.clock

SERVING, NOT_SERVING, SERVICE_UNKNOWN = b"\x08\x01", b"\x08\x02", b"\x08\x03"
INFERENCE = "inference.GRPCInferenceService"


def named(service: str) -> bytes:
    """A HealthCheckRequest."""
    return b"\n" + bytes([len(service)]) + service.encode() if service else b""


@dataclass
class Probe:
    client: StreamClient

    async def check(self, service: str = "") -> bytes:
        call = self.client.channel.unary_unary("/grpc.health.v1.Health/Check")
        answer: bytes = await call(named(service), timeout=5)
        return answer

    def watch(self, service: str = "") -> Any:
        return self.client.channel.unary_stream("/grpc.health.v1.Health/Watch")(named(service))


@asynccontextmanager
async def probed(models: Models) -> AsyncIterator[Probe]:
    async with streams_of(served_models(models)) as client:
        yield Probe(client)


@pytest.mark.parametrize(
    ("service", "draining", "lost"),
    [
        ("", NOT_SERVING, NOT_SERVING),
        (INFERENCE, NOT_SERVING, NOT_SERVING),
        ("readiness", NOT_SERVING, NOT_SERVING),
        ("liveness", SERVING, NOT_SERVING),
    ],
)
async def test_health_of_a_service_is_its_readiness_or_liveness(
    start: Start, service: str, draining: bytes, lost: bytes
) -> None:
    world = await start()
    async with probed(Models.of(world.runner)) as probe:
        assert await probe.check(service) == SERVING
        watch = probe.watch(service)
        assert await watch.read() == SERVING
        world.runner.drain()
        assert await probe.check(service) == draining
        if draining != SERVING:
            assert await watch.read() == draining
        world.runner.on_lost("gone")
        assert await probe.check(service) == lost
        if lost != draining:
            assert await watch.read() == lost
        watch.cancel()
    assert not any(world.runner.ledger.invalid.values())


async def test_service_that_is_unknown_is_not_found_and_no_invalid_request(start: Start) -> None:
    world = await start()
    async with probed(Models.of(world.runner)) as probe:
        with pytest.raises(aio.AioRpcError) as caught:
            await probe.check("other")
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        assert "service must be one of" in (caught.value.details() or "")
        watch = probe.watch("other")
        assert await watch.read() == SERVICE_UNKNOWN
        watch.cancel()
    assert not any(world.runner.ledger.invalid.values())


async def test_clients_that_send_slowly_do_not_hold_up_probes(start: Start) -> None:
    world = await start()
    receiving = SharedBound(4096 * 4)
    async with streams_of(served_models(Models.of(world.runner)), receiving=receiving) as client:
        receiving.take("slow", receiving.most)
        assert await Probe(client).check("liveness") == SERVING


async def test_probe_that_sends_nothing_ends_after_a_second(start: Start) -> None:
    world = await start()
    async with probed(Models.of(world.runner)) as probe:
        silent = probe.client.channel.stream_unary("/grpc.health.v1.Health/Check")()
        assert await probe.check() == SERVING
        with pytest.raises(aio.AioRpcError) as caught:
            await silent
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_watches_do_not_hold_up_a_server_that_stops(start: Start) -> None:
    world = await start()
    async with probed(Models.of(world.runner)) as probe:
        watch = probe.watch()
        assert await watch.read() == SERVING
        probe.client.server.leave(60.0)
        async with asyncio.timeout(5):
            with pytest.raises(aio.AioRpcError) as caught:
                await watch.read()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_model_that_generates_text_has_a_health() -> None:
    async with front() as world, streams_of(served_text(world.app.service)) as client:
        probe = Probe(client)
        assert await probe.check() == SERVING
        world.generator.drain()
        assert await probe.check() == NOT_SERVING
        assert await probe.check("liveness") == SERVING
