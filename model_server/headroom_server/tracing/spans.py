"""Spans from times that are measured anyway. Pure.

    request   ├ receive ┤├ queue ────┤├ batch ─────────────┤├ respond ┤
                                      ┊ link
    batch              ├ preprocess ┤├ stage ┤├ execute ┤├ postprocess ┤

    generated ├ receive ┤├ queue ┤├ prefill ┤├ decode ──────────────┤├ respond ┤
                                                       ├ detokenize ┤

Detokenizing and encoding happen after each iteration. Their span is as long as all of it together,
and ends with the last token.

The stages of a batch are known by their durations. They are placed one after the other around the
execution, which ended with the batch, or before its postprocessing if the device's thread did that
too: a batch that was staged while another one computed begins before its own execution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headroom_server.device.batches import ExecutedBatch
from headroom_server.tracing.current import Generated, Trace

Attributes = Mapping[str, str | int | float | Sequence[str]]
PROVIDER = "headroom"


class Span(NamedTuple):
    """Times are in seconds, on the server's clock."""

    name: str
    began_s: float
    ended_s: float
    attributes: Mapping[str, str | int | float | Sequence[str]] = {}


def of_request(trace: Trace, ended_s: float) -> list[Span]:
    """Return the parts of a request, in order."""
    accepted_s, batch = trace.accepted_s, trace.batch
    if accepted_s is None:
        return [Span("receive", trace.began_s, ended_s)]
    parts = [Span("receive", trace.began_s, accepted_s)]
    if trace.generated is not None and trace.generated.last_s is not None:
        return parts + _of_generation(trace.generated, accepted_s, ended_s)
    if batch is None:
        waited = trace.source in (None, "flight")
        return [*parts, Span("queue" if waited else "respond", accepted_s, ended_s)]
    began_s = max(accepted_s, batch.began_s)
    answered_s = min(max(began_s, batch.ended_s), ended_s)
    return [
        *parts,
        Span("queue", accepted_s, began_s),
        Span("batch", began_s, answered_s),
        Span("respond", answered_s, ended_s),
    ]


def of_answer(trace: Trace) -> Attributes:
    """Return what a request's span shows of generated text, by OpenTelemetry's conventions."""
    found, model = trace.generated, trace.model
    if found is None or found.requested is None or model is None:
        return {}
    requested = found.requested
    attributes: dict[str, str | int | float | Sequence[str]] = {
        "gen_ai.operation.name": requested.operation,
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": model,
        "gen_ai.response.model": model,
        "gen_ai.request.choice.count": requested.choices,
        "gen_ai.request.stream": requested.stream,
        "gen_ai.usage.input_tokens": found.prompt_tokens,
        "gen_ai.usage.cache_read.input_tokens": found.cached_tokens,
        "gen_ai.usage.output_tokens": found.answer_tokens,
        "gen_ai.response.finish_reasons": tuple(found.finish_reasons),
    }
    if requested.max_tokens is not None:
        attributes["gen_ai.request.max_tokens"] = requested.max_tokens
    if found.first_s is not None:
        attributes["gen_ai.response.time_to_first_chunk"] = found.first_s - trace.began_s
    return attributes


def _of_generation(found: Generated, accepted_s: float, ended_s: float) -> list[Span]:
    began_s, first_s, last_s = found.started_s, found.first_s, found.last_s
    assert first_s is not None
    assert last_s is not None
    started_s = max(accepted_s, accepted_s if began_s is None else began_s)
    first_s = max(started_s, first_s)
    last_s = min(max(first_s, last_s), ended_s)
    return [
        Span("queue", accepted_s, started_s),
        Span("prefill", started_s, first_s, {"gen_ai.usage.input_tokens": found.prompt_tokens}),
        Span("decode", first_s, last_s, {"gen_ai.usage.output_tokens": found.answer_tokens}),
        Span("detokenize", max(first_s, last_s - found.writing_s), last_s),
        Span("respond", last_s, ended_s),
    ]


def of_batch(model: str, done: ExecutedBatch[Any]) -> tuple[Span, list[Span]]:
    """Return a batch, and its stages in order."""
    stages = _stages(done)
    sealed, failed = done.sealed, sum(one is None for one in done.outputs)
    attributes: dict[str, str | int | float] = {
        "headroom.model": model,
        "headroom.batch.items": sealed.items,
        "headroom.batch.requests": len(sealed.batch),
        "headroom.batch.close": str(sealed.close),
    }
    if sealed.length:
        attributes["headroom.batch.length"] = sealed.length
    if failed:
        attributes["headroom.batch.failed"] = failed
    began_s = min([done.began_s, *(stage.began_s for stage in stages)])
    ended_s = max([done.began_s + done.seconds, *(stage.ended_s for stage in stages)])
    return Span("batch", began_s, ended_s, attributes), stages


def _stages(done: ExecutedBatch[Any]) -> list[Span]:
    if done.stages is None:
        return []
    preprocess_s, stage_s, execute_s, postprocess_s = done.stages
    executed_s = done.began_s + done.seconds - (0.0 if done.apart else postprocess_s)
    at_s = executed_s - execute_s - stage_s - preprocess_s
    spans = []
    for name, seconds in (
        ("preprocess", preprocess_s),
        ("stage", stage_s),
        ("execute", execute_s),
        ("postprocess", postprocess_s),
    ):
        if seconds > 0.0:
            spans.append(Span(name, at_s, at_s + seconds))
        at_s += seconds
    return spans
