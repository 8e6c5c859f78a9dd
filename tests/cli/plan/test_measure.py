"""`headroom plan measure` of a live server: cost, replicas, interrupts and a missing server."""

from __future__ import annotations

import asyncio
import json
import signal
import sys

import aiohttp
import pytest

from cli.plan.plans import plan, report
from free_ports import free_port
from support.server_process import Server, serving

pytestmark = pytest.mark.clock

SERVER = {
    "EMULATED_FIXED_COST_S": 0.040,
    "EMULATED_PER_ITEM_COST_S": 0.010,
    "MAX_BATCH_SIZE": 4,
    "WARMUP_REQUESTS": 8,
}
SWEEP = "--target 1s --step 0.2s --max-duration 3.3s"
"""Four steps of 0.8 s, the last at 0.84 of what full batches carry."""


async def headroom(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "headroom", "plan", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def received(server: Server) -> float:
    async with aiohttp.ClientSession() as http, http.get(f"{server.url}/metrics") as answer:
        page = await answer.text()
    return float(page.split('headroom_requests_received_total{model="m"} ')[1].split()[0])


async def test_plan_measure_of_live_server_reports_cost_and_replicas() -> None:
    """40 + 10 b ms, up to 4: 50/s in full batches."""
    async with serving(**SERVER) as server:
        await server.ready()
        line = f"measure {server.url} {SWEEP} --rate 100 -o json"
        process = await headroom(*line.split())
        out, err = await process.communicate()
        hopeless = await headroom("measure", server.url, "--target", "20ms")
        _, refusal = await hopeless.communicate()
    assert process.returncode == 0, err
    assert hopeless.returncode == 2
    assert b"(the time of a single request); got 20 ms. Increase the target" in refusal
    found = json.loads(out)
    steps, cost = found["measured"]["steps"], found["measured"]["cost"]
    rates_rps = [one["rateRps"] for one in steps]
    # A quarter of what warm-up showed, and its line goes through a few executions only.
    assert 0.5 * 12.5 < rates_rps[0] < 1.5 * 12.5
    assert rates_rps == pytest.approx([rates_rps[0] * 1.5**n for n in range(4)])
    assert all(one["met"] for one in steps)
    assert found["measured"]["metRps"] == steps[-1]["rateRps"]
    assert (cost["maxBatch"], cost["source"]) == (4, "batches")
    # The line goes through the mean of what was measured, however slow the machine is, and an
    # emulated batch is never faster than it should be.
    batches, items, seconds = (
        sum(one[name] for one in steps) for name in ("batches", "batchItems", "batchSeconds")
    )
    line_s = cost["fixedSeconds"] + cost["perItemSeconds"] * items / batches
    assert line_s == pytest.approx(seconds / batches, rel=0.2)
    assert line_s > 0.9 * (0.040 + 0.010 * items / batches)
    given = "rate 100 --target 1s --max-batch 4"
    fixed_ms, per_item_ms = 1e3 * cost["fixedSeconds"], 1e3 * cost["perItemSeconds"]
    given += f" --batch-overhead {fixed_ms:.2f}ms --per-item-time {per_item_ms:.2f}ms"
    assert found["plan"]["replicas"] == report(given)["plan"]["replicas"]


async def test_plan_measure_after_interrupt_prints_steps_so_far() -> None:
    async with serving(**SERVER) as server:
        await server.ready()
        line = f"measure {server.url} --target 200ms --step 0.2s --max-duration 1m"
        process = await headroom(*line.split())
        before = await received(server)
        while await received(server) < before + 35:  # a first step has about 10
            await asyncio.sleep(0.1)
            assert process.returncode is None, await process.communicate()
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert process.returncode == 130, err
    assert b"interrupted; so far: p95 within 200 ms" in out


def test_plan_measure_of_missing_server_names_it() -> None:
    for model in ("", "--model m"):
        result = plan(f"measure http://127.0.0.1:{free_port()} {model} --target 1s")
        assert result.exit_code == 2
        assert "check that the server is up" in result.stderr
