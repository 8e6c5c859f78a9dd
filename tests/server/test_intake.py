"""Request options over HTTP: refused and evicted requests, executed batches, the accounts."""

from __future__ import annotations

import asyncio

import pytest

from headroom_server.tracing.current import TRACE, Trace
from support.server_world import Start, balanced_metrics, metrics

pytestmark = pytest.mark.clock


async def test_request_predicted_late_is_refused_at_once(start: Start) -> None:
    world = await start(max_waiting=100)
    first = await world.hold_device()
    await asyncio.sleep(0.05)
    # the device overruns its prediction by 50 ms: it is expected to overrun it by as much again
    late = await world.predict([1, 1], **{"x-request-timeout": "0.01"})
    assert late.status_code == 429
    assert "predicted to come after the deadline" in late.json()["error"]
    assert 1 <= int(late.headers["retry-after"]) <= 30
    world.engine.free.set()
    await first
    assert world.engine.batches == [1]
    seen = await balanced_metrics(world)
    assert seen["headroom_requests_total{refused}"] == 1
    assert seen["headroom_requests_refused_total{deadline}"] == 1
    assert (seen["headroom_deadlines_met_total"], seen["headroom_deadlines_missed_total"]) == (0, 1)


async def test_urgent_request_evicts_the_least_urgent_from_a_full_queue(start: Start) -> None:
    world = await start(max_waiting=2)
    first = await world.hold_device()
    waiting = [
        asyncio.create_task(world.predict([1, 1], **{"x-request-priority": n})) for n in ("8", "9")
    ]
    await world.waiting(2)
    urgent = asyncio.create_task(world.predict([1, 1], **{"x-request-priority": "0"}))
    evicted = await waiting[1]
    assert evicted.status_code == 429
    assert "a more urgent request took its place" in evicted.json()["error"]
    assert 1 <= int(evicted.headers["retry-after"]) <= 30
    refused = await world.predict([1, 1], **{"x-request-priority": "8"})
    assert "at most 2 items may wait" in refused.json()["error"]
    world.engine.free.set()
    assert [(await one).status_code for one in (first, waiting[0], urgent)] == [200] * 3
    seen = await balanced_metrics(world)
    assert seen["headroom_requests_total{refused}"] == 2
    reasons = {name: n for name, n in seen.items() if "refused_total" in name and n}
    assert reasons == {
        "headroom_requests_refused_total{evicted}": 1,
        "headroom_requests_refused_total{queue_full}": 1,
    }


@pytest.mark.parametrize(
    ("header", "value"),
    [("x-request-priority", "10"), ("x-slo-class", "gold"), ("x-tenant", "t" * 200)],
)
async def test_wrong_request_options_are_invalid_input(
    start: Start, header: str, value: str
) -> None:
    world = await start()
    answer = await world.predict([1, 1], **{header: value})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(f"{header} must be ")
    seen = await balanced_metrics(world)
    assert seen["headroom_requests_invalid_total{invalid_input}"] == 1
    assert seen["headroom_requests_received_total"] == 0


async def test_device_seconds_are_accounted_for(start: Start) -> None:
    world = await start()
    answered = await world.predict([1, 1], **{"x-request-timeout": "5"})
    assert answered.status_code == 200
    world.engine.error = RuntimeError("broken")
    await world.predict([1, 1])
    seen = await metrics(world)
    wasted = {
        why: seen[f"headroom_device_wasted_seconds_total{{{why}}}"]
        for why in ("cancelled", "late", "failed", "padding")
    }
    busy_s = seen["headroom_device_busy_seconds_total"]
    assert busy_s == pytest.approx(seen["headroom_execution_duration_seconds_sum"])
    assert 0 < wasted["failed"] < busy_s
    assert (wasted["cancelled"], wasted["late"], wasted["padding"]) == (0, 0, 0)
    closed = sum(n for name, n in seen.items() if "batch_close_total" in name)
    assert closed == seen["headroom_batch_size_count"] == 2
    assert seen["headroom_deadlines_met_total"] == 1
    assert seen["headroom_saturation"] >= 0


class Faulty:
    """A recorder with a defect."""

    def batch(self, model: str, done: object) -> object:
        raise ZeroDivisionError(model)


async def test_defect_in_tracing_leaves_no_request_unanswered(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    world = await start()
    TRACE.set(Trace(Faulty(), object(), 0.0))
    traced = await world.predict([1, 1])
    TRACE.set(None)
    assert traced.status_code == 500
    assert traced.json() == {"error": "the server failed"}
    assert "ZeroDivisionError" in caplog.text
    assert (await world.predict([1, 2])).json() == {"predictions": [3.0]}
    seen = await balanced_metrics(world)
    assert seen["headroom_requests_total{failed}"] == 1
