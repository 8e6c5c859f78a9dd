"""Requests over HTTP that wait: batches, back-pressure, deadlines, clients that leave."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from headroom_server.connection import STATE_KEY, Connection
from support.server_world import Start, balanced_metrics

pytestmark = pytest.mark.clock


async def test_waiting_requests_are_executed_together(start: Start) -> None:
    world = await start()
    first = await world.hold_device()
    other_lengths = [asyncio.create_task(world.predict([i, i])) for i in range(4)]
    await world.waiting(4)
    world.engine.free.set()
    assert [(await one).json()["predictions"] for one in other_lengths] == [[0], [2], [4], [6]]
    await first
    assert world.engine.batches == [1, 4]
    seen = await balanced_metrics(world)
    assert seen["headroom_batch_size_sum"] == 5
    assert seen["headroom_batch_size_count"] == 2
    assert seen["headroom_requests_total{ok}"] == 5
    assert seen["headroom_request_duration_seconds_count"] == 5


async def test_full_queue_refuses_with_retry_after(start: Start) -> None:
    world = await start(max_waiting=2)
    accepted = [await world.hold_device()]
    accepted += [asyncio.create_task(world.predict([1, 1])) for _ in range(2)]
    await world.waiting(2)
    refused = await world.predict([1, 1])
    assert refused.status_code == 429
    assert refused.headers["retry-after"] in {"1", "2"}  # next to nothing, and up to a second more
    during = await balanced_metrics(world)
    assert during["headroom_requests_waiting"] == 2
    assert during["headroom_requests_running"] == 1
    assert during["headroom_oldest_waiting_seconds"] > 0
    world.engine.free.set()
    assert {(await one).status_code for one in accepted} == {200}
    seen = await balanced_metrics(world)
    assert (seen["headroom_requests_total{ok}"], seen["headroom_requests_total{refused}"]) == (3, 1)


async def test_deadline_passing_in_the_queue_is_answered_at_once(start: Start) -> None:
    world = await start()
    first = await world.hold_device()
    late = await world.predict([1, 1], **{"x-request-timeout": "0.05"})
    assert late.status_code == 504
    world.engine.free.set()
    await first
    assert world.engine.batches == [1]
    assert (await balanced_metrics(world))["headroom_requests_total{expired}"] == 1


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf", "1e9"])
async def test_invalid_deadline_is_refused(start: Start, value: str) -> None:
    world = await start()
    answer = await world.predict([1, 1], **{"x-request-timeout": value})
    assert answer.status_code == 400
    assert "x-request-timeout must be a number of seconds above 0" in answer.json()["error"]


@pytest.mark.parametrize("waiting", [True, False], ids=["while it waits", "while it runs"])
async def test_disconnected_client_cancels_its_request(start: Start, waiting: bool) -> None:
    world = await start()
    connection = Connection()
    first = await world.hold_device() if waiting else None
    world.engine.began.clear()
    if not waiting:
        world.engine.hold()
    body = orjson.dumps({"instances": [[1, 1]]})
    sent = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/models/m:predict",
        "headers": [],
        "query_string": b"",
        "state": {STATE_KEY: connection},
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    request = asyncio.create_task(world.app(scope, receive, send))
    await (world.waiting(1) if waiting else asyncio.to_thread(world.engine.began.wait, 5))
    connection.lost()
    await request
    assert sent[0]["status"] == 499
    world.engine.free.set()
    if first is not None:
        await first
    assert (await balanced_metrics(world))["headroom_requests_total{cancelled}"] == 1


async def test_deadline_that_no_server_could_meet_is_neither_load_nor_a_miss(
    start: Start,
) -> None:
    world = await start()
    await world.predict([1, 1])
    answer = await world.predict([1, 1], **{"x-request-timeout": "0.0000001"})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("x-request-timeout, or a deadline of")
    seen = await balanced_metrics(world)
    assert seen["headroom_requests_received_total"] == 1
    assert seen["headroom_requests_invalid_total{impossible_deadline}"] == 1
    assert seen["headroom_deadlines_missed_total"] == 0
