"""Traces of generated text: the stages of a request, streamed or whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import DEFAULT_ON

from headroom_server.tracing.open_telemetry import OpenTelemetry
from headroom_server.tracing.over_http import TracedHttp
from support.generation_front import FrontWorld, ScriptedExecutor, events, front

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE_ID}-b7ad6b7169203331-01"
STAGES = ["receive", "queue", "prefill", "decode", "detokenize", "respond"]


@dataclass
class Traced:
    front: FrontWorld
    exporter: InMemorySpanExporter
    http: httpx.AsyncClient

    async def complete(self, **body: object) -> httpx.Response:
        asked = {"model": "m", "prompt": "abc", **body}
        return await self.http.post("/v1/completions", json=asked, headers={"traceparent": PARENT})

    def request(self) -> ReadableSpan:
        (found,) = (s for s in self.exporter.get_finished_spans() if s.name.startswith("POST"))
        return found

    def stages(self) -> list[ReadableSpan]:
        own = self.request().context
        return [s for s in self.exporter.get_finished_spans() if s.parent == own]


@asynccontextmanager
async def traced(pace_s: float = 0.0) -> AsyncIterator[Traced]:
    async with front(ScriptedExecutor(pace_s=pace_s)) as here:
        exporter = InMemorySpanExporter()
        telemetry = OpenTelemetry(SimpleSpanProcessor(exporter), sampler=DEFAULT_ON)
        transport = httpx.ASGITransport(app=TracedHttp(here.app, telemetry))
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
            yield Traced(here, exporter, http)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_has_a_span_per_stage_without_gaps(stream: bool) -> None:
    async with traced(pace_s=0.01) as here:
        answer = await here.complete(stream=stream)

        assert answer.headers["traceparent"].startswith(f"00-{TRACE_ID}-")
        if stream:
            assert "".join(one["choices"][0]["text"] for one in events(answer)) == "hello"
        request, stages = here.request(), {span.name: span for span in here.stages()}
        assert list(stages) == STAGES
        assert request.name == "POST /v1/completions"
        found = dict(request.attributes or {})
        assert 0.0 < found.pop("gen_ai.response.time_to_first_chunk") < 10.0  # type: ignore[operator]
        assert {name: value for name, value in found.items() if name.startswith("gen_ai.")} == {
            "gen_ai.operation.name": "text_completion",
            "gen_ai.provider.name": "headroom",
            "gen_ai.request.model": "m",
            "gen_ai.response.model": "m",
            "gen_ai.request.choice.count": 1,
            "gen_ai.request.max_tokens": 16,
            "gen_ai.request.stream": stream,
            "gen_ai.usage.input_tokens": 4,  # with the beginning
            "gen_ai.usage.cache_read.input_tokens": 0,
            "gen_ai.usage.output_tokens": 6,
            "gen_ai.response.finish_reasons": ("stop",),
        }
        assert found["headroom.model"] == "m"
        whole = [stages[name] for name in STAGES if name != "detokenize"]
        assert [span.start_time for span in whole[1:]] == [s.end_time for s in whole[:-1]]
        assert (whole[0].start_time, whole[-1].end_time) == (request.start_time, request.end_time)
        decode, text = stages["decode"], stages["detokenize"]
        assert seconds(decode) >= 0.04  # six tokens, a hundredth of a second each
        assert text.end_time == decode.end_time
        assert 0 < seconds(text) < seconds(decode)
        assert (stages["prefill"].attributes or {})[
            "gen_ai.usage.input_tokens"
        ] == 4  # with the beginning
        assert (decode.attributes or {})["gen_ai.usage.output_tokens"] == 6


def seconds(span: ReadableSpan) -> float:
    assert span.start_time is not None
    assert span.end_time is not None
    return (span.end_time - span.start_time) / 1e9


async def test_waiting_for_a_seat_is_the_queue_and_not_the_prefill() -> None:
    async with traced() as here:
        here.front.executor.hold()
        others = [asyncio.create_task(here.front.complete()) for _ in range(8)]  # all seats
        await asyncio.sleep(0.05)
        asked = asyncio.create_task(here.complete())
        await asyncio.sleep(0.2)
        here.front.executor.free.set()
        await asyncio.gather(asked, *others)

        stages = {span.name: span for span in here.stages()}
        assert seconds(stages["queue"]) > 0.15
        assert seconds(stages["prefill"]) < 0.15


async def test_a_request_that_is_invalid_has_only_been_received() -> None:
    async with traced() as here:
        assert (await here.complete(max_tokens=-1)).status_code == 400

        assert [span.name for span in here.stages()] == ["receive"]


async def test_a_request_that_fails_before_its_first_token_has_waited() -> None:
    async with traced() as here:
        here.front.executor.error = lambda _: RuntimeError("no")
        assert (await here.complete()).status_code == 500

        assert [span.name for span in here.stages()] == ["receive", "queue"]
        assert here.request().status.is_ok is False
