"""The response cache of a server: one entry for all encodings, accounts, limits."""

from __future__ import annotations

import asyncio
import os
import time
from array import array
from pathlib import Path
from typing import Any

import orjson
import pytest
from grpc import aio

from headroom_server.caching.cache import Cache
from headroom_server.caching.levels import LevelOptions
from headroom_server.engine import DeviceLostError, LoadError
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc import server as grpc_server
from headroom_server.protocols.open_inference import HEAD_LENGTH
from headroom_server.repository.description_file import parse
from headroom_server.runtime.caches import cache_of, identity_of, second_level_of
from headroom_server.runtime.registry import Models
from headroom_server.runtime.store import ModelSource
from headroom_server.settings import Settings
from support.server_world import Start, World, balanced_metrics, until

pytestmark = pytest.mark.clock


def cache() -> Cache:
    return Cache("m/1", LevelOptions(1 << 20, 60.0, time.monotonic))


async def typed(world: World) -> Any:
    return (await world.predict([1.0, 2.0])).json()["predictions"]


async def v2_json(world: World) -> Any:
    tensor = {"name": "x", "shape": [1, 2], "datatype": "FP64", "data": [1, 2]}
    answer = await world.http.post("/v2/models/m/infer", json={"inputs": [tensor]})
    return answer.json()["outputs"][0]["data"]


async def v2_binary(world: World) -> Any:
    tensor = {"name": "x", "shape": [1, 2], "datatype": "FP64"}
    head = orjson.dumps(
        {
            "inputs": [tensor | {"parameters": {"binary_data_size": 16}}],
            "outputs": [{"name": "sum", "parameters": {"binary_data": True}}],
        }
    )
    answer = await world.http.post(
        "/v2/models/m/infer",
        content=head + array("d", [1, 2]).tobytes(),
        headers={HEAD_LENGTH: str(len(head))},
    )
    return [*array("d", answer.content[int(answer.headers[HEAD_LENGTH]) :])]


async def over_grpc(world: World) -> Any:
    bounds = grpc_server.Bounds(max_message_bytes=4096, max_age_s=60, age_grace_s=60)
    server = grpc_server.GrpcServer(grpc_server.served_models(Models.of(world.runner)), bounds)
    port = await server.start("127.0.0.1", 0)
    request = pb.ModelInferRequest(
        model_name="m",
        inputs=[pb.ModelInferRequest.InferInputTensor(name="x", datatype="FP64", shape=[1, 2])],
        raw_input_contents=[array("d", [1, 2]).tobytes()],
    )
    async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        ask = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=pb.ModelInferRequest.SerializeToString,
            response_deserializer=pb.ModelInferResponse.FromString,
        )
        answer = await ask(request, timeout=5)
    await server.stop()
    return [*array("d", answer.raw_output_contents[0])]


async def test_all_encodings_share_one_cache_entry(
    start: Start,
) -> None:
    world = await start(cache=cache())
    for form in (v2_json, typed, v2_binary, over_grpc):
        assert await form(world) == [3.0]
    assert world.engine.batches == [1]
    seen = await balanced_metrics(world)
    assert seen["headroom_cache_hits_total{memory}"] == 3
    assert seen["headroom_cache_misses_total"] == 1
    assert seen["headroom_requests_received_total"] == 4
    assert seen["headroom_requests_total{ok}"] == 4
    assert seen["headroom_request_duration_seconds_count"] == 4
    assert seen["headroom_execution_duration_seconds_count"] == 1
    assert seen["headroom_queue_duration_seconds_count"] == 1
    assert (seen["headroom_cache_entries"], seen["headroom_cache_bytes"]) == (1, 768 + 128 + 8)


async def test_cache_is_off_by_default(start: Start) -> None:
    world = await start()
    await asyncio.gather(typed(world), typed(world))
    assert sum(world.engine.batches) == 2
    assert not any(name.startswith("headroom_cache") for name in await balanced_metrics(world))


async def test_concurrent_equal_requests_are_one_execution(start: Start) -> None:
    world = await start(cache=cache())
    held = await world.hold_device()
    equal = [asyncio.create_task(typed(world)) for _ in range(8)]
    await world.waiting(1)
    world.engine.free.set()
    assert await asyncio.gather(*equal) == [[3.0]] * 8
    await held
    assert world.engine.batches == [1, 1]
    seen = await balanced_metrics(world)
    assert seen["headroom_cache_hits_total{flight}"] == 7


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"x-tenant": "busy"}, {"x-tenant": "other"}),
        ({"x-request-priority": "9"}, {"x-request-priority": "0"}),
    ],
)
async def test_equal_request_of_another_tenant_or_priority_is_not_waited_for(
    start: Start, before: dict[str, str], after: dict[str, str]
) -> None:
    """It may wait behind thousands of its tenant's, or behind all others."""
    world = await start(cache=cache())

    async def ask(headers: dict[str, str]) -> Any:
        body = {"instances": [[1.0, 2.0]]}
        answer = await world.http.post("/v1/models/m:predict", json=body, headers=headers)
        return answer.json()["predictions"]

    held = await world.hold_device()
    asked = [asyncio.create_task(ask(headers)) for headers in (before, before, after, after)]
    await world.waiting(2)
    world.engine.free.set()
    assert await asyncio.gather(*asked) == [[3.0]] * 4
    await held


async def test_cache_hit_needs_no_place_in_the_queue(start: Start) -> None:
    world = await start(max_waiting=1, max_batch_size=1, cache=cache())
    await typed(world)
    held = await world.hold_device()
    waits = asyncio.create_task(world.predict([5.0, 5.0]))
    await world.waiting(1)
    assert (await world.predict([6.0, 6.0])).status_code == 429
    assert await typed(world) == [3.0]
    world.engine.free.set()
    await asyncio.gather(held, waits)


async def test_errors_are_not_cached(start: Start) -> None:
    world = await start(cache=cache())
    world.engine.error = ValueError("poisoned")
    answers = await asyncio.gather(*(world.predict([1.0, 2.0]) for _ in range(3)))
    assert [answer.status_code for answer in answers] == [500] * 3
    world.engine.error = None
    assert await typed(world) == [3.0]
    seen = await balanced_metrics(world)
    assert seen["headroom_requests_total{failed}"] == 3


async def test_closed_intake_refuses_cache_hits(start: Start) -> None:
    world = await start(cache=cache())
    await typed(world)
    world.runner.drain()
    assert await typed(world) == [3.0]  # accepted as before, until the intake closes
    world.runner.close_intake()
    assert (await world.predict([1.0, 2.0])).status_code == 503


async def test_follower_is_answered_when_the_device_is_lost(start: Start) -> None:
    world = await start(cache=cache())
    held = await world.hold_device()
    equal = [asyncio.create_task(world.predict([1.0, 2.0])) for _ in range(4)]
    await world.waiting(1)
    world.engine.error = DeviceLostError("gone")
    world.engine.free.set()
    answers = await asyncio.wait_for(asyncio.gather(*equal), 5)
    assert sorted(answer.status_code for answer in answers) == [500, 503, 503, 503]
    assert (await held).status_code == 500
    await balanced_metrics(world)


async def test_follower_is_answered_when_the_grace_period_ends(start: Start) -> None:
    world = await start(cache=cache())
    held = await world.hold_device()
    equal = [asyncio.create_task(world.predict([1.0, 2.0])) for _ in range(4)]
    await world.waiting(1)
    world.runner.drain()
    world.runner.close_intake()
    assert world.runner.abandon() == 2
    answers = await asyncio.wait_for(asyncio.gather(*equal, held), 5)
    assert [answer.status_code for answer in answers] == [503] * 5
    await asyncio.wait_for(world.runner.wait_idle(), 5)
    await balanced_metrics(world)
    world.engine.free.set()


async def test_wait_idle_includes_executions_handed_over(start: Start) -> None:
    world = await start(cache=cache())
    held = await world.hold_device()
    leader = asyncio.create_task(world.predict([1.0, 2.0]))
    await world.waiting(1)
    follower = asyncio.create_task(world.predict([1.0, 2.0]))
    await until(lambda: world.runner.ledger.in_flight == 3)
    leader.cancel()
    idle_task = asyncio.create_task(world.runner.wait_idle())
    world.engine.free.set()
    await idle_task
    await asyncio.sleep(0)
    assert (await follower).json() == {"predictions": [3.0]}
    await held


# ---- settings

EMULATED = 'engine = "emulated"\n'


@pytest.mark.parametrize(
    ("settings", "described", "on"),
    [
        ({}, "", False),
        ({"cache_bytes": 1024}, "", True),
        ({"cache_bytes": 1024}, "[cache]\nbytes = 0", False),
        ({}, "[cache]\nbytes = 1024\nttl_s = 5", True),
    ],
    ids=["off", "by settings", "off by the model", "by the model"],
)
def test_cache_size_of_a_description_overrides_the_settings(
    settings: dict[str, Any], described: str, on: bool
) -> None:
    source = ModelSource("m", 1, description=parse((EMULATED + described).encode(), "m"))
    assert (cache_of(Settings(**settings), source, None) is not None) is on


def test_identity_differs_for_other_weights(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"1")
    os.utime(tmp_path / "model.safetensors", ns=(0, 1))
    settings, source = Settings(), ModelSource("m", 1, tmp_path, tmp_path)
    first = identity_of(settings, source)
    assert identity_of(settings, source) == first
    os.utime(tmp_path / "model.safetensors", ns=(0, 2))
    assert identity_of(settings, source) != first
    assert identity_of(settings, ModelSource("m", 2, tmp_path, tmp_path)) != identity_of(
        settings, source
    )


def test_invalid_redis_url_is_refused_without_its_password() -> None:
    settings = Settings(cache_redis_url="http://user:secret@host")
    with pytest.raises(LoadError, match=r"redis://\[user:password@\]host") as caught:
        second_level_of(settings)
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(settings)
    assert second_level_of(Settings()) is None
