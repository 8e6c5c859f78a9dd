"""Calls over gRPC that wait or end early: codes, deadlines, cancellation, drain."""

from __future__ import annotations

import asyncio
import struct
import subprocess
import sys
from typing import Any

import pytest

from headroom_server.open_inference_grpc.server import Bounds, GrpcServer, served_models
from headroom_server.runtime.registry import Models
from support.grpc_calls import Code, StartCalls, raw
from support.grpc_streams import streams_of
from support.server_world import balanced_metrics

pytestmark = pytest.mark.clock


async def test_grpc_full_queue_returns_retry_after(calls: StartCalls) -> None:
    one = await calls(max_waiting=1)
    held = await one.world.hold_device()
    waiting = asyncio.create_task(one.infer(raw((1, 1))))
    await one.world.waiting(1)
    error = await one.refused(raw((1, 1)))
    assert error.code() == Code.RESOURCE_EXHAUSTED
    trailing = dict(error.trailing_metadata())
    seconds = int(trailing["retry-after"])
    assert seconds >= 1
    assert int(trailing["grpc-retry-pushback-ms"]) == 1000 * seconds
    one.world.engine.free.set()
    await held
    await waiting


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0.15},
        {"metadata": (("x-request-timeout", "0.15"),)},
        {"timeout": 20, "metadata": (("x-request-timeout", "0.15"),)},
    ],
    ids=["grpc-timeout", "x-request-timeout", "the earlier"],
)
async def test_grpc_deadline_passing_in_the_queue_expires(
    calls: StartCalls, options: dict[str, Any]
) -> None:
    one = await calls()
    held = await one.world.hold_device()
    error = await one.refused(raw((1, 1)), **options)
    assert error.code() == Code.DEADLINE_EXCEEDED
    await one.world.waiting(0)
    one.world.engine.free.set()
    await held
    assert one.world.engine.batches == [1]
    seen = await balanced_metrics(one.world)
    assert seen["headroom_requests_total{expired}"] == 1


async def test_grpc_cancelled_call_leaves_the_queue(calls: StartCalls) -> None:
    one = await calls()
    held = await one.world.hold_device()
    call = asyncio.create_task(one.infer(raw((1, 1))))
    await one.world.waiting(1)
    call.cancel()
    await one.world.waiting(0)
    one.world.engine.free.set()
    await held
    assert one.world.engine.batches == [1]
    seen = await balanced_metrics(one.world)
    assert seen["headroom_requests_total{cancelled}"] == 1


async def test_grpc_failing_batch_reveals_no_internals(calls: StartCalls) -> None:
    one = await calls()
    one.world.engine.error = RuntimeError("secret detail")
    error = await one.refused(raw((1, 1)))
    assert error.code() == Code.INTERNAL
    assert "secret" not in str(error.details())


async def test_grpc_metadata_are_request_options(calls: StartCalls) -> None:
    one = await calls()
    error = await one.refused(raw((1, 1)), metadata=(("x-request-priority", "10"),))
    assert error.code() == Code.INVALID_ARGUMENT
    assert "x-request-priority must be a digit" in str(error.details())


async def test_grpc_drain_answers_accepted_calls_only(calls: StartCalls) -> None:
    one = await calls()
    held = await one.world.hold_device()
    accepted = asyncio.create_task(one.infer(raw((1, 2))))
    await one.world.waiting(1)
    one.server.leave(5)
    await asyncio.sleep(0.05)
    assert (await one.refused(raw((1, 1)), timeout=1)).code() == Code.UNAVAILABLE
    one.world.engine.free.set()
    assert [*(await accepted).raw_output_contents] == [struct.pack("<d", 3)]
    await held


async def test_grpc_stream_answers_in_order_and_a_bad_request_by_its_error(
    calls: StartCalls,
) -> None:
    one = await calls()
    async with streams_of(served_models(Models.of(one.world.runner))) as client:
        bad = raw((1, 2), id="bad", model_name="x")
        found = await client.exchange(raw((1, 2), id="a"), bad, raw((3, 4), id="b"))
    assert [response.infer_response.id for response in found] == ["a", "bad", "b"]
    assert [bool(response.error_message) for response in found] == [False, True, False]
    assert [*found[2].infer_response.raw_output_contents] == [struct.pack("<d", 7)]
    assert found[1].infer_response.parameters["status"].string_param == "NOT_FOUND"
    seen = await balanced_metrics(one.world)
    assert seen["headroom_requests_total{ok}"] == 2


async def test_grpc_stream_repeats_no_name_that_is_too_long(calls: StartCalls) -> None:
    one = await calls()
    async with streams_of(served_models(Models.of(one.world.runner))) as client:
        long = raw((1, 2), id="i" * 1500, model_name="m" * 1500)
        (found,) = await client.exchange(long)
    assert found.infer_response.model_name == "m" * 1024
    assert found.infer_response.id == "i" * 1024


async def test_grpc_stream_whose_client_leaves_cancels_what_waits(calls: StartCalls) -> None:
    one = await calls()
    held = await one.world.hold_device()
    async with streams_of(served_models(Models.of(one.world.runner))) as client:
        stream = client.open()
        for _ in range(3):
            await stream.write(raw((1, 2)))
        await one.world.waiting(3)
        stream.cancel()
        await one.world.waiting(0)
    one.world.engine.free.set()
    await held
    seen = await balanced_metrics(one.world)
    assert seen["headroom_requests_total{cancelled}"] == 3


async def test_grpc_port_in_use_is_reported(calls: StartCalls) -> None:
    one = await calls()
    bounds = Bounds(max_message_bytes=4096, max_age_s=60, age_grace_s=60)
    runner = one.world.runner
    first = GrpcServer(served_models(Models.of(runner)), bounds)
    second = GrpcServer(served_models(Models.of(runner)), bounds)
    port = await first.start("127.0.0.1", 0)
    with pytest.raises(OSError, match=str(port)):
        await second.start("127.0.0.1", port)
    await first.stop()


def test_server_without_grpc_does_not_import_it() -> None:
    code = "import sys, headroom_server.server.batching_models; sys.exit('grpc' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
