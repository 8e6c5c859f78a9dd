"""Failing, hanging and lost devices over HTTP: failed requests, and answers of probes."""

from __future__ import annotations

import asyncio
from array import array
from typing import Any

import pytest

from headroom_server.engine import DeviceLostError
from support.server_world import Start, balanced_metrics, until

pytestmark = pytest.mark.clock


async def test_failing_batch_fails_only_its_requests(start: Start) -> None:
    world = await start()
    world.engine.error = RuntimeError("secret detail")
    answer = await world.predict([1, 1])
    assert answer.status_code == 500
    assert "secret" not in answer.text
    world.engine.error = None
    assert (await world.predict([1, 1])).json() == {"predictions": [2.0]}
    assert (await world.http.get("/v2/health/live")).status_code == 200
    assert (await balanced_metrics(world))["headroom_requests_total{failed}"] == 1


async def test_lost_device_fails_liveness_and_answers_all_requests(start: Start) -> None:
    world = await start()
    running = await world.hold_device()
    waiting = asyncio.create_task(world.predict([1, 1]))
    await world.waiting(1)
    world.engine.error = DeviceLostError("CUDA error: an illegal memory access was encountered")
    world.engine.free.set()
    assert [(await one).status_code for one in (running, waiting)] == [500, 500]
    assert (await world.http.get("/v2/health/live")).status_code == 503
    assert (await world.http.get("/v2/health/ready")).status_code == 503
    assert (await world.predict([1, 1])).status_code == 503
    assert (await balanced_metrics(world))["headroom_ready"] == 0


async def test_hanging_device_fails_liveness(start: Start) -> None:
    world = await start(stall_timeout_s=0.05)
    request = await world.hold_device()
    await until(lambda: not world.runner.live)
    assert (await world.http.get("/v2/health/live")).status_code == 503
    world.engine.free.set()
    await request
    assert (await world.http.get("/v2/health/live")).status_code == 200


async def test_hanging_batch_fails_the_queue_and_closes_the_intake(
    start: Start,
) -> None:
    world = await start(stall_timeout_s=0.05)
    running = await world.hold_device()
    waiting = asyncio.create_task(world.predict([1, 1]))
    await world.waiting(1)
    await until(lambda: not world.runner.live)
    assert (await world.http.get("/v2/health/ready")).status_code == 503
    refused = await world.predict([1, 1])
    assert refused.status_code == 503
    world.runner.watch()
    assert [(await one).status_code for one in (running, waiting)] == [500, 500]
    assert (await balanced_metrics(world))["headroom_ready"] == 0
    world.engine.free.set()
    await until(lambda: world.runner.ready)
    assert (await world.predict([1, 1])).json() == {"predictions": [2.0]}
    assert world.engine.batches == [1, 1]
    assert (await balanced_metrics(world))["headroom_requests_total{failed}"] == 2


@pytest.mark.parametrize(
    "outputs",
    [
        pytest.param([], id="no answer"),
        pytest.param([{"sum": array("d", [1])}] * 2, id="too many answers"),
        pytest.param([{}], id="no output"),
        pytest.param([{"sum": array("d", [1, 2])}], id="too many numbers"),
        pytest.param([{"sum": array("q", [1])}], id="another type"),
        pytest.param([{"sum": None}], id="no numbers"),
        pytest.param([None], id="nothing"),
        pytest.param(None, id="nothing at all"),
    ],
)
async def test_undeclared_outputs_fail_only_their_batch(start: Start, outputs: Any) -> None:
    world = await start()
    world.engine.forged = [outputs]
    answer = await asyncio.wait_for(world.predict([1, 1]), 5)
    assert answer.status_code == 500
    assert (await world.predict([1, 1])).json() == {"predictions": [2.0]}
    assert (await balanced_metrics(world))["headroom_requests_total{failed}"] == 1


async def test_nan_output_fails_only_its_request(start: Start) -> None:
    world = await start()
    first = await world.hold_device()
    good = asyncio.create_task(world.predict([1, 1]))
    bad = asyncio.create_task(world.predict([1.7e308, 1.7e308]))
    await world.waiting(2)
    world.engine.free.set()
    assert ((await good).status_code, (await bad).status_code) == (200, 500)
    await first
    assert world.engine.batches == [1, 2]
