"""OpenTelemetry: the SDK samples, propagates and exports; spans are created here.

Spans are created once their times are known, so none is started or carried around. The SDK's batch
processor holds a bounded number of them and drops the rest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from opentelemetry.context import Context
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    get_current_span,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from headroom_server import __version__
from headroom_server.device.batches import ExecutedBatch
from headroom_server.tracing.current import Trace
from headroom_server.tracing.spans import Attributes, Span, of_answer, of_batch, of_request

SCOPE = InstrumentationScope("headroom_server", __version__)
OK = Status(StatusCode.UNSET)
ERROR = Status(StatusCode.ERROR)
CLOCKS_AGREE_S = 10.0
"""Time for which the offset between the server's clock and wall-clock time is assumed constant."""


class RequestSpan(NamedTuple):
    """A request's own span, its name, and its parent span."""

    context: SpanContext
    parent: SpanContext | None
    name: str
    attributes: Attributes


class Begun(NamedTuple):
    """A request whose trace has begun."""

    trace: Trace | None
    """None if it is not sampled."""
    traceparent: str
    """The header for the client and for downstream requests."""


class OpenTelemetry:
    """Starts traces of sampled requests and records their results."""

    def __init__(
        self,
        processor: SpanProcessor,
        clock: Callable[[], float] = time.monotonic,
        wall_ns: Callable[[], int] = time.time_ns,
        sampler: Sampler | None = None,
    ) -> None:
        """Take the resource, and the sampler if None, from the environment (OTEL_*)."""
        named = {"service.name": "headroom-server", **OTELResourceDetector().detect().attributes}
        provider = TracerProvider(sampler, Resource.create(named), shutdown_on_exit=False)
        self._processor = processor
        self._sampler, self._ids = provider.sampler, provider.id_generator
        self._resource = provider.resource
        self._propagator = TraceContextTextMapPropagator()
        self.clock = clock
        self._wall_ns = wall_ns
        self._zero_ns = 0
        self._agree_until_s = float("-inf")

    def begin(self, carrier: Mapping[str, str], name: str, attributes: Attributes) -> Begun:
        """Begin a request's trace. `carrier`: its `traceparent` and `tracestate`, if present."""
        context = self._propagator.extract(carrier, Context()) if carrier else Context()
        above = get_current_span(context).get_span_context()
        parent = above if above.is_valid else None
        trace_id = self._ids.generate_trace_id() if parent is None else parent.trace_id
        decision = self._sampler.should_sample(
            context, trace_id, name, kind=SpanKind.SERVER, attributes=attributes
        )
        sampled = decision.decision is Decision.RECORD_AND_SAMPLE
        own = SpanContext(
            trace_id,
            self._ids.generate_span_id(),
            is_remote=False,
            trace_flags=TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT),
            trace_state=decision.trace_state,
        )
        traceparent = f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"
        if not sampled:
            return Begun(None, traceparent)
        return Begun(
            Trace(self, RequestSpan(own, parent, name, attributes), self.clock()), traceparent
        )

    def end(self, trace: Trace, attributes: Attributes, *, failed: bool) -> None:
        """End the trace of an answered or abandoned request."""
        own, ended_s = trace.context, self.clock()
        assert isinstance(own, RequestSpan)
        all_attributes = {**own.attributes, **attributes, **of_answer(trace)}
        if trace.model is not None:
            all_attributes["headroom.model"] = trace.model
        if trace.source is not None:
            all_attributes["headroom.answer.source"] = trace.source
        links = []
        if trace.batch is not None:
            assert isinstance(trace.batch.context, SpanContext)
            links.append(Link(trace.batch.context))
        whole = Span(own.name, trace.began_s, ended_s, all_attributes)
        self._record(
            whole, own.context, own.parent, kind=SpanKind.SERVER, links=links, failed=failed
        )
        for part in of_request(trace, ended_s):
            self._record(part, self._child(own.context), own.context)

    def batch(self, model: str, done: ExecutedBatch[object]) -> SpanContext:
        """Record a batch and its stages as a trace of its own, because many requests share it."""
        span, stages = of_batch(model, done)
        context = SpanContext(
            self._ids.generate_trace_id(),
            self._ids.generate_span_id(),
            is_remote=False,
            trace_flags=TraceFlags(TraceFlags.SAMPLED),
        )
        failed = "headroom.batch.failed" in span.attributes
        self._record(span, context, None, failed=failed)
        for stage in stages:
            self._record(stage, self._child(context), context)
        return context

    def stop(self, within_s: float) -> bool:
        """Export the rest, within a timeout; return whether that succeeded."""
        # the processor's own shutdown waits for the exporter's timeout and its retries
        thread = threading.Thread(target=self._processor.shutdown, name="traces-end", daemon=True)
        thread.start()
        thread.join(within_s)
        return not thread.is_alive()

    def _child(self, of: SpanContext) -> SpanContext:
        return SpanContext(
            of.trace_id,
            self._ids.generate_span_id(),
            is_remote=False,
            trace_flags=of.trace_flags,
            trace_state=of.trace_state,
        )

    def _record(
        self,
        span: Span,
        context: SpanContext,
        parent: SpanContext | None,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        links: Sequence[Link] = (),
        failed: bool = False,
    ) -> None:
        self._processor.on_end(
            ReadableSpan(
                span.name,
                context,
                parent,
                self._resource,
                span.attributes,
                links=links,
                kind=kind,
                status=ERROR if failed else OK,
                start_time=self._epoch_ns(span.began_s),
                end_time=self._epoch_ns(span.ended_s),
                instrumentation_scope=SCOPE,
            )
        )

    def _epoch_ns(self, at_s: float) -> int:
        now_s = self.clock()
        if now_s >= self._agree_until_s:
            self._zero_ns = self._wall_ns() - round(now_s * 1e9)
            self._agree_until_s = now_s + CLOCKS_AGREE_S
        return self._zero_ns + round(at_s * 1e9)
