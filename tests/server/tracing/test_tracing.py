"""Traces: spans from measured times, contexts, sampling, export."""

from __future__ import annotations

import time
from array import array
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, DEFAULT_ON, Sampler
from opentelemetry.trace import SpanContext, StatusCode

from headroom_server.device.batches import ExecutedBatch
from headroom_server.engine import StageTimes
from headroom_server.scheduling.entries import CloseReason, QueueEntry, SealedBatch
from headroom_server.tracing.current import Batch, Trace, executed
from headroom_server.tracing.open_telemetry import OpenTelemetry
from headroom_server.tracing.setup import configured
from headroom_server.tracing.spans import Span, of_batch, of_request

pytestmark = pytest.mark.clock

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = PARENT[:-1] + "0"


class NoTracing:
    def batch(self, model: str, done: ExecutedBatch[Any]) -> object:
        raise AssertionError(model, done)


def batch_of(requests: int = 1, **fields: Any) -> ExecutedBatch[None]:
    """Items 2 each; on the device from 10.0 to 10.008."""
    entries = tuple(QueueEntry(key, 2, 9.0, None, None) for key in range(requests))
    answers = [{"y": array("d", [1.0, 2.0])}] * requests
    sealed = SealedBatch(entries, (), 0, CloseReason.FULL)
    stages = StageTimes(0.0, 0.001, 0.006, 0.001)
    return ExecutedBatch(sealed, answers, 10.0, 0.008, stages)._replace(**fields)


def rounded(spans: list[Span]) -> list[tuple[str, float, float]]:
    return [(span.name, round(span.began_s, 6), round(span.ended_s, 6)) for span in spans]


@pytest.mark.parametrize(
    ("noted", "parts"),
    [
        ({}, [("receive", 9.0, 11.0)]),
        ({"accepted_s": 9.1}, [("receive", 9.0, 9.1), ("queue", 9.1, 11.0)]),
        (
            {"accepted_s": 9.1, "source": "memory"},
            [("receive", 9.0, 9.1), ("respond", 9.1, 11.0)],
        ),
        (
            {"accepted_s": 9.1, "source": "flight"},
            [("receive", 9.0, 9.1), ("queue", 9.1, 11.0)],
        ),
        (
            {"accepted_s": 9.1, "batch": (None, 10.0, 10.5)},
            [
                ("receive", 9.0, 9.1),
                ("queue", 9.1, 10.0),
                ("batch", 10.0, 10.5),
                ("respond", 10.5, 11.0),
            ],
        ),
        (
            {"accepted_s": 9.1, "batch": (None, 9.0, 12.0)},
            [
                ("receive", 9.0, 9.1),
                ("queue", 9.1, 9.1),
                ("batch", 9.1, 11.0),
                ("respond", 11.0, 11.0),
            ],
        ),
    ],
    ids=[
        "was no request",
        "left or expired while it waited",
        "was answered from memory",
        "waited for another's execution",
        "was answered from a batch",
        "left before its batch ended",
    ],
)
def test_request_spans_have_no_gaps(
    noted: dict[str, Any], parts: list[tuple[str, float, float]]
) -> None:
    trace = Trace(NoTracing(), None, 9.0)
    for name, value in noted.items():
        setattr(trace, name, Batch(*value) if name == "batch" else value)
    assert rounded(of_request(trace, 11.0)) == parts


def test_batch_stages_end_with_the_batch() -> None:
    span, stages = of_batch("m", batch_of(3))
    assert rounded([span]) == [("batch", 10.0, 10.008)]
    assert rounded(stages) == [
        ("stage", 10.0, 10.001),
        ("execute", 10.001, 10.007),
        ("postprocess", 10.007, 10.008),
    ]
    assert span.attributes == {
        "headroom.model": "m",
        "headroom.batch.items": 6,
        "headroom.batch.requests": 3,
        "headroom.batch.close": "full",
    }


def test_parallel_host_work_lies_outside_the_execution() -> None:
    # staged in 2 ms while another batch computed, executed from 10.0 to 10.006, then dealt out
    ahead = batch_of(seconds=0.006, stages=StageTimes(0.001, 0.002, 0.006, 0.003), apart=True)
    span, stages = of_batch("m", ahead)
    assert rounded([span]) == [("batch", 9.997, 10.009)]
    assert rounded(stages) == [
        ("preprocess", 9.997, 9.998),
        ("stage", 9.998, 10.0),
        ("execute", 10.0, 10.006),
        ("postprocess", 10.006, 10.009),
    ]


def test_batch_with_failures_has_their_number_and_no_stages() -> None:
    done = batch_of(2, stages=None)
    span, stages = of_batch("m", done._replace(outputs=[None, done.outputs[0]]))
    assert (span.attributes["headroom.batch.failed"], stages) == (1, [])


# ---- recorded


class Recorded:
    """Telemetry into memory, on a manual clock."""

    def __init__(self, sampler: Sampler = DEFAULT_ON) -> None:
        self.now_s = 9.0
        self.exporter = InMemorySpanExporter()
        self.telemetry = OpenTelemetry(
            SimpleSpanProcessor(self.exporter),
            clock=lambda: self.now_s,
            wall_ns=lambda: 1_000_000_000_000 + round(self.now_s * 1e9),
            sampler=sampler,
        )

    def begin(self, **carrier: str) -> tuple[Trace | None, str]:
        return self.telemetry.begin(carrier, "POST", {"url.path": "/"})

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}


def context_of(span: ReadableSpan) -> SpanContext:
    context: SpanContext | None = span.context
    assert context is not None
    return context


def test_request_and_batch_are_two_linked_traces() -> None:
    recorded = Recorded()
    trace, reply = recorded.begin(traceparent=PARENT, tracestate="vendor=1")
    assert trace is not None
    trace.accepted_s = 9.5
    executed("m", batch_of(), [trace, None])
    recorded.now_s = 10.5
    recorded.telemetry.end(trace, {"http.response.status_code": 200}, failed=False)
    spans = recorded.exporter.get_finished_spans()
    batch = spans[0]
    (request,) = [span for span in spans if span.name == "POST"]
    assert context_of(request).trace_id == 0x0AF7651916CD43DD8448EB211C80319C
    assert request.parent is not None
    assert request.parent.span_id == 0xB7AD6B7169203331
    assert context_of(request).trace_state.to_header() == "vendor=1"
    assert reply == f"{PARENT[:36]}{context_of(request).span_id:016x}-01"
    assert (batch.name, batch.parent) == ("batch", None)
    assert [link.context for link in request.links] == [batch.context]
    assert [span.name for span in spans] == [
        *("batch", "stage", "execute", "postprocess"),
        *("POST", "receive", "queue", "batch", "respond"),
    ]
    assert all(span.parent == batch.context for span in spans[1:4])
    assert all(span.parent == request.context for span in spans[5:])
    assert (request.start_time, request.end_time) == (1_009_000_000_000, 1_010_500_000_000)
    assert request.attributes == {"url.path": "/", "http.response.status_code": 200}


def test_requests_of_one_batch_share_its_span() -> None:
    recorded = Recorded()
    traces = [recorded.begin()[0] for _ in range(3)]
    executed("m", batch_of(3), traces)
    for trace in traces:
        assert trace is not None
        recorded.telemetry.end(trace, {}, failed=False)
    finished = recorded.exporter.get_finished_spans()
    requests = [span for span in finished if span.name == "POST"]
    assert len({context_of(span).trace_id for span in requests}) == 3
    assert len({link.context.span_id for span in requests for link in span.links}) == 1


@pytest.mark.parametrize(
    ("sampler", "carrier", "sampled"),
    [
        (DEFAULT_ON, {}, True),
        (DEFAULT_ON, {"traceparent": UNSAMPLED}, False),
        (DEFAULT_ON, {"traceparent": PARENT}, True),
        (ALWAYS_OFF, {"traceparent": PARENT}, False),
        (ALWAYS_ON, {"traceparent": UNSAMPLED}, True),
    ],
    ids=["no parent", "unsampled parent", "sampled parent", "always off", "always on"],
)
def test_sampling_follows_parent_and_sampler(
    sampler: Sampler, carrier: dict[str, str], sampled: bool
) -> None:
    recorded = Recorded(sampler)
    trace, reply = recorded.begin(**carrier)
    assert (trace is not None) is sampled
    assert reply.endswith("-01" if sampled else "-00")
    if carrier:
        assert reply.startswith(PARENT[:36])
        assert reply[36:52] != PARENT[36:52]
    executed("m", batch_of(), [trace])
    assert bool(recorded.spans()) is sampled


@pytest.mark.parametrize(
    "traceparent",
    ["", "00", PARENT.upper(), "ff" + PARENT[2:], PARENT.replace("b7ad6b7169203331", "0" * 16)],
)
def test_invalid_context_begins_a_new_trace(traceparent: str) -> None:
    trace, reply = Recorded().begin(traceparent=traceparent)
    assert trace is not None
    assert reply[3:35] != PARENT[3:35]


def test_failed_requests_are_marked() -> None:
    recorded = Recorded()
    trace, _ = recorded.begin()
    assert trace is not None
    done = batch_of()
    executed("m", done._replace(outputs=[None]), [trace])
    assert recorded.spans()["batch"].status.status_code is StatusCode.ERROR
    recorded.telemetry.end(trace, {}, failed=True)
    assert recorded.spans()["POST"].status.status_code is StatusCode.ERROR


class Stuck(SpanExporter):
    """A collector that accepts the connection and never responds."""

    def export(self, spans: Any) -> SpanExportResult:
        time.sleep(1.0)
        return SpanExportResult.SUCCESS


def test_shutdown_exports_the_rest_within_its_timeout() -> None:
    exporter = InMemorySpanExporter()
    telemetry = OpenTelemetry(BatchSpanProcessor(exporter), sampler=ALWAYS_ON)
    executed("m", batch_of(), [telemetry.begin({}, "POST", {}).trace])
    assert not exporter.get_finished_spans()
    assert telemetry.stop(5.0)
    assert exporter.get_finished_spans()[0].name == "batch"

    telemetry = OpenTelemetry(BatchSpanProcessor(Stuck()), sampler=ALWAYS_ON)
    executed("m", batch_of(), [telemetry.begin({}, "POST", {}).trace])
    began_s = time.perf_counter()
    assert not telemetry.stop(0.05)
    assert time.perf_counter() - began_s < 0.5


@pytest.mark.parametrize(
    ("environment", "traced"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "TRUE"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_tracing_is_enabled_by_an_endpoint(environment: dict[str, str], traced: bool) -> None:
    assert configured(environment) is traced
