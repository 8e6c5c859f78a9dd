"""Requests to a measured server, and how answers, refusals and timeouts count."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from free_ports import free_port
from headroom.adapters.pods.live_server import LiveServer, ones_for
from headroom.adapters.pods.load_measurement import idle_s, measured_step
from headroom.errors import Unmeasurable

pytestmark = pytest.mark.clock


def test_synthetic_request_has_ones_for_every_input() -> None:
    metadata = {
        "inputs": [
            {"name": "image", "datatype": "FP32", "shape": [-1, 2, 2]},
            {"name": "ids", "datatype": "INT64", "shape": [1, -1]},
            {"name": "mask", "datatype": "BOOL", "shape": [1]},
            {"name": "text", "datatype": "BYTES", "shape": [1]},
        ]
    }
    image, ids, mask, text = json.loads(ones_for(metadata))["inputs"]
    assert image == {"name": "image", "datatype": "FP32", "shape": [1, 2, 2], "data": [1.0] * 4}
    assert ids["data"] == [1]
    assert mask["data"] == [True]
    assert text["data"] == ["measure"]


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {"inputs": []},
        {"inputs": [{"name": "a"}]},
        {"inputs": [{"name": "a", "datatype": "FP32", "shape": ["x"]}]},
        {"inputs": [{"name": "a", "datatype": "COMPLEX", "shape": [1]}]},
        {"inputs": [{"name": "a", "datatype": "FP32", "shape": [10**12]}]},
        {"inputs": [{"name": "a", "datatype": "FP32", "shape": [1 << 20]}] * 2},
    ],
)
def test_inputs_that_cannot_be_synthesized_require_a_body(metadata: object) -> None:
    with pytest.raises(Unmeasurable, match="pass --body FILE"):
        ones_for(metadata)


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://a", "http://"])
def test_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(Unmeasurable, match="an http or https URL"):
        LiveServer(url, None, timeout_s=1.0)


def test_model_in_the_url_is_used() -> None:
    server = LiveServer("http://a:1/v2/models/resnet/infer", None, timeout_s=1.0)
    assert server.model == "resnet"


Answer = Callable[[web.Request], Awaitable[web.Response]]


@asynccontextmanager
async def server(infer: Answer, page: str = "") -> AsyncIterator[str]:
    """A model server of another kind, by default without a metrics page."""
    application = web.Application()

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(status=200 if page else 404, text=page)

    application.router.add_get("/metrics", metrics)
    inputs = [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}]

    async def metadata(_: web.Request) -> web.Response:
        return web.json_response({"name": "m", "inputs": inputs})

    application.router.add_get("/v2/models/m", metadata)
    application.router.add_post("/v2/models/m/infer", infer)
    runner = web.AppRunner(application)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


async def right(request: web.Request) -> web.Response:
    assert (await request.json())["inputs"][0]["data"] == [1.0, 1.0]
    return web.json_response({"outputs": []})


async def test_answers_are_timed_and_unknown_values_are_none() -> None:
    async with server(right) as url, LiveServer(url, "m", timeout_s=5.0) as live:
        assert await live.learn() is None
        assert 0 < await idle_s(live) < 1.0
        step = await measured_step(live, 100.0, 0.5, seed=1)
    assert step.missed == 0
    assert 25 <= len(step.latencies_s) <= 80
    assert step.batches is None


async def test_requests_are_sent_on_schedule_regardless_of_earlier_answers() -> None:
    """All answers wait until the last request is due: an open loop has sent them all."""
    waiting, gate = 0, asyncio.Event()

    async def held(request: web.Request) -> web.Response:
        nonlocal waiting
        waiting += 1
        await gate.wait()
        return await right(request)

    async with server(held) as url, LiveServer(url, "m", timeout_s=30.0) as live:
        await live.learn()
        asyncio.get_running_loop().call_later(1.0, gate.set)
        step = await measured_step(live, 100.0, 0.5, seed=1)
    assert waiting == len(step.latencies_s) > 20
    assert min(step.latencies_s) > 0.2
    assert max(step.latencies_s) > 0.8


async def test_refusals_and_timeouts_are_misses() -> None:
    count = 0

    async def moody(request: web.Request) -> web.Response:
        nonlocal count
        count += 1
        if count % 3 == 0:
            return web.Response(status=503)
        if count % 3 == 1:
            await asyncio.sleep(1.5)
        return await right(request)

    async with server(moody) as url, LiveServer(url, "m", timeout_s=0.5) as live:
        await live.learn()
        step = await measured_step(live, 60.0, 0.5, seed=1)
    assert count == len(step.latencies_s) + step.missed
    assert step.missed >= 2 * len(step.latencies_s) - 2
    assert len(step.latencies_s) > 3


async def test_server_that_refuses_a_single_request_is_not_loaded() -> None:
    async def never(_: web.Request) -> web.Response:
        return web.Response(status=400, text="shape")

    async with server(never) as url, LiveServer(url, "m", timeout_s=1.0) as live:
        await live.learn()
        with pytest.raises(Unmeasurable, match=r"got 400 'shape'.*plan generation"):
            await idle_s(live)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (None, "pass --model NAME"),
        ("other", "must answer with 200; got 404.*plan generation RATE --measure"),
    ],
)
async def test_unknown_model_is_an_error(model: str | None, said: str) -> None:
    async with server(right) as url, LiveServer(url, model, timeout_s=1.0) as live:
        with pytest.raises(Unmeasurable, match=said):
            await live.learn()


@pytest.mark.parametrize("name", ["x" * 900_000, "m\x1b[2J m"])
async def test_name_that_is_none_is_not_taken_from_a_page(name: str) -> None:
    page = f'headroom_max_batch_size{{model="{name}"}} 8\n'
    async with server(right, page) as url, LiveServer(url, None, timeout_s=1.0) as live:
        with pytest.raises(Unmeasurable, match="pass --model NAME") as raised:
            await live.learn()
    assert len(str(raised.value)) < 500
