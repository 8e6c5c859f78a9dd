"""Traces of a server: recorded, returned and exported, over HTTP and gRPC."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import grpc
import httpx
import pytest
from aiohttp import web
from grpc import aio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import DEFAULT_ON

from headroom_server.caching.cache import Cache
from headroom_server.caching.levels import LevelOptions
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.server import Bounds as GrpcBounds
from headroom_server.open_inference_grpc.server import GrpcServer, served_models
from headroom_server.runtime.registry import Models
from headroom_server.tracing.open_telemetry import OpenTelemetry
from headroom_server.tracing.over_grpc import TracedGrpc
from headroom_server.tracing.over_http import TracedHttp
from support.loopback import on_loopback
from support.server_process import serving
from support.server_world import Start, World

pytestmark = pytest.mark.clock

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE_ID}-b7ad6b7169203331-01"


@dataclass
class Traced:
    world: World
    telemetry: OpenTelemetry
    exporter: InMemorySpanExporter
    http: httpx.AsyncClient

    async def predict(self, *instances: Any, **headers: str) -> httpx.Response:
        return await self.http.post(
            "/v1/models/m:predict", json={"instances": list(instances)}, headers=headers
        )

    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def requests(self) -> list[ReadableSpan]:
        return [span for span in self.spans() if span.name.startswith(("POST", "inference"))]


StartTraced = Callable[..., Awaitable[Traced]]


@pytest.fixture
async def traced(start: Start) -> AsyncIterator[StartTraced]:
    opened: list[Traced] = []

    async def make(**limits: Any) -> Traced:
        world, exporter = await start(**limits), InMemorySpanExporter()
        telemetry = OpenTelemetry(SimpleSpanProcessor(exporter), sampler=DEFAULT_ON)
        transport = httpx.ASGITransport(app=TracedHttp(world.app, telemetry))
        http = httpx.AsyncClient(transport=transport, base_url="http://server")
        opened.append(Traced(world, telemetry, exporter, http))
        return opened[-1]

    yield make
    for one in opened:
        await one.http.aclose()


async def test_request_is_traced_from_its_client_to_its_batch(traced: StartTraced) -> None:
    one = await traced()
    answer = await one.predict([1.0, 2.0], traceparent=PARENT, tracestate="vendor=1")
    assert answer.json() == {"predictions": [3.0]}
    assert answer.headers["traceparent"].startswith(f"00-{TRACE_ID}-")
    (request,) = one.requests()
    assert request.context is not None
    assert answer.headers["traceparent"] == (f"00-{TRACE_ID}-{request.context.span_id:016x}-01")
    assert request.name == "POST /v1/models/{model}:predict"
    assert dict(request.attributes or {}) == {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "url.path": "/v1/models/m:predict",
        "headroom.model": "m",
    }
    batch = next(span for span in one.spans() if span.name == "batch" and span.parent is None)
    assert [link.context for link in request.links] == [batch.context]
    children = [span for span in one.spans() if span.parent == request.context]
    assert [span.name for span in children] == ["receive", "queue", "batch", "respond"]
    assert [span.start_time for span in children[1:]] == [s.end_time for s in children[:-1]]
    assert children[0].start_time == request.start_time
    assert children[-1].end_time == request.end_time
    stages = [span for span in one.spans() if span.parent == batch.context]
    assert "execute" in [span.name for span in stages]


async def test_requests_in_one_batch_link_to_one_span(traced: StartTraced) -> None:
    one = await traced()
    held = await one.world.hold_device()
    requests = [asyncio.create_task(one.predict([float(n), 2.0])) for n in range(3)]
    await one.world.waiting(3)
    one.world.engine.free.set()
    await asyncio.gather(held, *requests)
    assert len(one.requests()) == 3
    links = {link.context.span_id for span in one.requests() for link in span.links}
    assert len(links) == 1


async def test_unsampled_parent_records_nothing(traced: StartTraced) -> None:
    one = await traced()
    answer = await one.predict([1.0, 2.0], traceparent=PARENT[:-1] + "0")
    assert answer.headers["traceparent"].endswith("-00")
    assert not one.spans()


async def test_refusals_and_invalid_input_are_traced_with_their_status(traced: StartTraced) -> None:
    one = await traced(max_waiting=1, max_batch_size=1)
    assert (await one.predict("no")).status_code == 400
    held = await one.world.hold_device()
    waits = asyncio.create_task(one.predict([1.0, 1.0]))
    await one.world.waiting(1)
    refused = await one.predict([1.0, 1.0])
    assert "traceparent" in refused.headers
    one.world.engine.free.set()
    await asyncio.gather(held, waits)
    statuses = [dict(span.attributes or {})["http.response.status_code"] for span in one.requests()]
    assert statuses == [400, 429, 200]


async def test_other_routes_are_not_traced(traced: StartTraced) -> None:
    one = await traced()
    for path in ("/metrics", "/v2/health/ready", "/v2/models/m"):
        answer = await one.http.get(path)
        assert (answer.status_code, "traceparent" in answer.headers) == (200, False)
    assert not one.spans()


async def test_cache_hit_records_its_source(traced: StartTraced) -> None:
    one = await traced()
    cached = await traced(cache=Cache("m/1", LevelOptions(1 << 20, 60.0, one.telemetry.clock)))
    for _ in range(2):
        await cached.predict([1.0, 2.0])
    sources = [dict(span.attributes or {})["headroom.answer.source"] for span in cached.requests()]
    assert sources == ["device", "memory"]
    assert not cached.requests()[1].links


@asynccontextmanager
async def grpc_channel(one: Traced) -> AsyncIterator[aio.Channel]:
    """Serve the model over gRPC with traces, and connect to it."""
    bounds = GrpcBounds(max_message_bytes=4096, max_age_s=60, age_grace_s=60)
    models = Models.of(one.world.runner)
    server = GrpcServer(served_models(models), bounds, [TracedGrpc(one.telemetry)])
    port = await server.start("127.0.0.1", 0)
    try:
        async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        await server.stop()


def an_input() -> pb.ModelInferRequest.InferInputTensor:
    """Return a batch of one with two numbers."""
    x = pb.ModelInferRequest.InferInputTensor(name="x", datatype="FP64", shape=[1, 2])
    x.contents.fp64_contents.extend([1, 2])
    return x


async def test_grpc_context_is_metadata(traced: StartTraced) -> None:
    one = await traced()
    async with grpc_channel(one) as channel:
        ask = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=pb.ModelInferRequest.SerializeToString,
            response_deserializer=pb.ModelInferResponse.FromString,
        )
        metadata = (("traceparent", PARENT),)
        call = ask(
            pb.ModelInferRequest(model_name="m", inputs=[an_input()]), metadata=metadata, timeout=5
        )
        await call
        trailing = dict(await call.trailing_metadata())
        assert trailing["traceparent"].startswith(f"00-{TRACE_ID}-")
        with pytest.raises(aio.AioRpcError) as caught:
            await ask(pb.ModelInferRequest(model_name="other"), timeout=5)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    codes = [dict(span.attributes or {})["rpc.grpc.status_code"] for span in one.requests()]
    assert codes == [0, 5]
    assert len(one.requests()[0].links) == 1


async def test_grpc_stream_is_one_span_with_the_stages_of_its_first_request(
    traced: StartTraced,
) -> None:
    one = await traced()
    async with grpc_channel(one) as channel:
        stream = channel.stream_stream(
            "/inference.GRPCInferenceService/ModelStreamInfer",
            request_serializer=pb.ModelInferRequest.SerializeToString,
            response_deserializer=pb.ModelStreamInferResponse.FromString,
        )(metadata=(("traceparent", PARENT),), timeout=5)
        for _ in range(2):
            await stream.write(pb.ModelInferRequest(model_name="m", inputs=[an_input()]))
            assert not (await stream.read()).error_message
        await stream.done_writing()
        assert await stream.read() is aio.EOF
        trailing = dict(await stream.trailing_metadata())
        assert trailing["traceparent"].startswith(f"00-{TRACE_ID}-")
    (span,) = one.requests()
    attributes = dict(span.attributes or {})
    assert attributes["rpc.method"] == "ModelStreamInfer"
    assert attributes["rpc.grpc.status_code"] == 0
    assert len(span.links) == 1


@asynccontextmanager
async def collector() -> AsyncIterator[tuple[str, list[Any]]]:
    spans: list[Any] = []

    async def take(request: web.Request) -> web.Response:
        message = ExportTraceServiceRequest.FromString(await request.read())
        for resource in message.resource_spans:
            name = {one.key: one.value.string_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                spans.extend((name["service.name"], span) for span in scope.spans)
        return web.Response()

    async with on_loopback(take, method="POST", path="/v1/traces") as url:
        yield url, spans


async def test_shutdown_exports_remaining_spans() -> None:
    async with collector() as (url, spans):
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_SERVICE_NAME": "front",
            "OTEL_BSP_SCHEDULE_DELAY": "60000",
        }
        async with serving(environment, DRAIN_DELAY_S=0) as server:
            await server.ready()
            async with (
                aiohttp.ClientSession() as http,
                http.post(
                    f"{server.url}/v1/models/m:predict", json={"instances": [[1, 2, 3, 4]]}
                ) as answer,
            ):
                reply = answer.headers["traceparent"]
            assert not spans
            server.process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(server.process.wait(), 10) == 0
    assert {service for service, _ in spans} == {"front"}
    (request,) = [span for _, span in spans if span.name.startswith("POST")]
    assert reply == f"00-{request.trace_id.hex()}-{request.span_id.hex()}-01"
    (batch,) = [span for _, span in spans if span.name == "batch" and not span.parent_span_id]
    assert request.links[0].span_id == batch.span_id


def test_unused_libraries_are_not_imported() -> None:
    program = (
        "import sys, json, headroom_server.composition as c\n"
        "import headroom_server.server.batching_models\n"
        "from headroom_server.settings import Settings\n"
        "from headroom_server.runtime.store import ModelSource\n"
        "c.build_runner(Settings(engine='emulated', cache_bytes=1024), ModelSource('m'))\n"
        "c.telemetry_of({})\n"
        "print(json.dumps([m for m in ('redis', 'opentelemetry.sdk') if m in sys.modules]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert json.loads(done.stdout) == []
