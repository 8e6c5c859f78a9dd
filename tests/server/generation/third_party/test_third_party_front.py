"""The HTTP front over a third-party engine: a stand-in for vLLM answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import orjson
import pytest

from headroom_server.generation.loop.startup import WarmUpLimits
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import ByteTokenizer
from headroom_server.generation.third_party.engine import ThirdPartyEngine
from headroom_server.openai_api.application import GenerationApplication
from headroom_server.runtime.generating.generation_requests import GeneratorOptions
from headroom_server.runtime.generating.generator import Generator
from headroom_server.telemetry.accounting import Outcome
from headroom_server.vllm_engine.model import VllmModel
from support.generation_front import events
from support.server_world import until
from support.third_party_world import FakeAsyncLLM, opening_of


class World:
    def __init__(self, engine: FakeAsyncLLM, generator: Generator, http: httpx.AsyncClient) -> None:
        self.engine = engine
        self.generator = generator
        self.http = http
        self.loop: Any = generator.engine

    async def complete(self, prompt: str = "abc", **body: object) -> httpx.Response:
        headers = body.pop("headers", None)
        content = orjson.dumps({"model": "m", "prompt": prompt, "max_tokens": 8, **body})
        return await self.http.post("/v1/completions", content=content, headers=headers)  # type: ignore[arg-type]

    def hold(self) -> None:
        """From now on, answers wait after their first token."""
        self.engine.held = asyncio.Event()  # of the engine's loop, which sets it

    def release(self) -> None:
        held = self.engine.held
        if held is not None:
            self.loop._shared.call(held.set)


@asynccontextmanager
async def world(
    engine: FakeAsyncLLM | None = None, *, wait: bool = True, failure: str = "", **limits: float
) -> AsyncIterator[World]:
    engine = engine or FakeAsyncLLM()
    third_party = ThirdPartyEngine(
        "vllm",
        VllmModel(opening_of(engine, failure=failure)),
        clock=time.monotonic,
        warm_up=WarmUpLimits(**limits),  # type: ignore[arg-type]
    )
    generator = Generator("m", third_party, GeneratorOptions())
    text = ModelText(tokenizer=ByteTokenizer())
    app = GenerationApplication(generator, text, max_body_bytes=1 << 20)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
        generator.start()
        found = World(engine, generator, http)
        try:
            if wait:
                await until(lambda: generator.ready)
                engine.started.clear()
                engine.most_running = 0
            yield found
        finally:
            found.release()
            generator.stop()
            assert await asyncio.to_thread(generator.join, 5.0)
            assert engine.shut_down or failure
            assert not engine.running


async def test_an_answer_is_vllms_text() -> None:
    async with world() as here:
        answer = await here.complete()

        assert answer.json()["choices"][0]["text"] == "hello"
        assert answer.json()["usage"]["completion_tokens"] == 6  # with the end of the sequence
        assert here.generator.ledger.outcomes[Outcome.OK] == 1


async def test_a_stream_has_every_token() -> None:
    async with world() as here:
        answer = await here.complete(stream=True)

        text = "".join(one["choices"][0]["text"] for one in events(answer))
        assert text == "hello"


async def test_warm_up_runs_full_seats_and_everything_that_is_compiled_on_first_use() -> None:
    engine = FakeAsyncLLM()
    async with world(engine, wait=False) as here:
        await until(lambda: here.generator.ready)

        assert engine.most_running == 4
        assert any(one.logprobs == 1 and one.top_k for one in engine.parameters.values())
        ready = await here.http.get("/v2/health/ready")
        assert ready.status_code == 200
        assert ready.json()["shapes"][1]["sequences"] == 4
        assert here.loop.statistics().iterations == 0  # warm-up is no traffic


async def test_an_engine_that_does_not_start_fails_the_server() -> None:
    async with world(wait=False, failure="vLLM did not start: no memory") as here:
        await here.generator.failed()

        assert here.generator.failure == "vLLM did not start: no memory"
        assert not here.generator.live


async def test_a_slow_engine_is_not_warm() -> None:
    async with world(wait=False, max_latency_s=1e-9, timeout_s=0.6) as here:
        await here.generator.failed()

        assert "HEADROOM_WARMUP" in str(here.generator.failure)


async def test_only_its_seats_are_in_the_engine_and_the_others_follow() -> None:
    async with world() as here:
        here.hold()
        tasks = [asyncio.create_task(here.complete()) for _ in range(10)]
        await until(lambda: len(here.engine.started) == 4)
        await until(lambda: here.loop.statistics().waiting_requests == 6)
        here.release()
        answers = await asyncio.gather(*tasks)

        assert [one.status_code for one in answers] == [200] * 10
        assert here.engine.most_running <= 4


async def test_a_client_that_leaves_frees_its_seat() -> None:
    async with world() as here:
        here.hold()
        task = asyncio.create_task(here.complete(stream=True))
        await until(lambda: len(here.engine.running) == 1)
        (run,) = here.generator._runs
        run.cancel()
        await until(lambda: not here.engine.running)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        assert len(here.engine.aborted) == 1
        assert here.generator.ledger.outcomes[Outcome.CANCELLED] == 1


async def test_a_deadline_ends_the_request_in_the_engine_too() -> None:
    async with world() as here:
        here.hold()
        answer = await here.complete(headers={"x-request-timeout": "0.3"})

        assert answer.status_code == 504
        await until(lambda: not here.engine.running)
        assert here.generator.ledger.outcomes[Outcome.EXPIRED] == 1


async def test_what_vllm_does_not_take_is_answered_and_the_server_stays_ready() -> None:
    failing = FakeAsyncLLM(error=lambda key: RuntimeError("no") if int(key) == 2 else None)
    async with world(failing) as here:
        answers = [await here.complete() for _ in range(4)]

        assert [one.status_code for one in answers] == [200, 500, 200, 200]
        assert here.generator.ready


async def test_an_engine_that_dies_ends_every_stream_with_an_error_and_the_server() -> None:
    async with world() as here:
        here.hold()
        task = asyncio.create_task(here.complete(stream=True))
        await until(lambda: len(here.engine.running) == 1)
        here.engine.errored = True
        answer = await task
        await here.generator.failed()

        last = answer.text.strip().split("\n\n")[-1]
        assert '"error"' in last
        assert not here.generator.live


async def test_an_engine_that_fails_every_request_is_not_ready_until_it_works_again() -> None:
    engine = FakeAsyncLLM()
    async with world(engine) as here:
        engine.error = lambda _: RuntimeError("no")
        for _ in range(3):
            assert (await here.complete()).status_code == 500
        await until(lambda: not here.generator.ready)
        engine.error = lambda _: None
        await until(lambda: here.generator.ready)

        assert (await here.complete()).status_code == 200


async def test_a_drained_server_finishes_streams_and_ends_those_that_remain() -> None:
    async with world() as here:
        here.hold()
        task = asyncio.create_task(here.complete(stream=True))
        await until(lambda: len(here.engine.running) == 1)
        here.generator.drain()
        here.generator.close_intake()

        assert (await here.complete()).status_code == 503
        assert here.generator.abandon() == 1
        assert '"error"' in (await task).text
        await until(lambda: not here.engine.running)


@pytest.mark.parametrize("stall_s", [0.05])
async def test_an_engine_that_says_nothing_is_seen_to_stall(stall_s: float) -> None:
    async with world() as here:
        assert here.loop.executing_since_s is None
        here.hold()
        task = asyncio.create_task(here.complete())
        await until(lambda: len(here.engine.running) == 1)
        await asyncio.sleep(stall_s)

        since_s = here.loop.executing_since_s
        assert since_s is not None
        assert time.monotonic() - since_s >= stall_s / 2
        here.release()
        assert (await task).status_code == 200
        await until(lambda: here.loop.executing_since_s is None)
