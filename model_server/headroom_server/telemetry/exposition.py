"""The Prometheus text format, and the series that all kinds of models share. Pure.

Text is written directly: the client library needs 3 ms for the same samples, ten times as long, and
a scrape runs on the loop that serves requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headroom_server.telemetry.accounting import Ledger, Outcome
from headroom_server.telemetry.histograms import Histogram, label

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def head(name: str, kind: str, meaning: str) -> str:
    """Return the two lines before a family's samples."""
    return f"# HELP headroom_{name} {meaning}\n# TYPE headroom_{name} {kind}\n"


INVALID = head(
    "requests_invalid_total", "counter", "Invalid requests, by reason; not counted as received."
)


def sample(name: str, labels: str, value: float) -> str:
    """Return the line of one sample."""
    return f"headroom_{name}{{{labels}}} {value}\n"


def single(name: str, kind: str, meaning: str, labels: str, value: float) -> Iterator[str]:
    """Yield a family with one sample."""
    yield head(name, kind, meaning)
    yield sample(name, labels, value)


def counters(
    name: str, meaning: str, model: str, key: str, values: Mapping[Any, float]
) -> Iterator[str]:
    """Yield a counter with a label."""
    yield head(name, "counter", meaning)
    for value, count in values.items():
        yield sample(name, f'{model},{key}="{value}"', count)


def invalid(labels: str, counts: Mapping[str, int]) -> list[str]:
    """Return the samples of invalid requests."""
    return [
        sample("requests_invalid_total", f'{labels}reason="{reason}"', count)
        for reason, count in sorted(counts.items())
    ]


def histogram(name: str, meaning: str, model: str, values: Histogram) -> Iterator[str]:
    """Yield a histogram."""
    yield head(name, "histogram", meaning)
    yield from buckets(name, model, values)


def buckets(name: str, model: str, values: Histogram) -> Iterator[str]:
    """Yield a histogram's samples."""
    bucket = f"headroom_{name}_bucket{{{model},le="
    so_far = 0
    for bound, count in zip(values.bounds, values.counts, strict=False):
        so_far += count
        yield f'{bucket}"{label(bound)}"}} {so_far}\n'
    so_far += values.counts[-1]
    yield f'{bucket}"+Inf"}} {so_far}\n'
    yield sample(f"{name}_sum", model, values.total)
    yield sample(f"{name}_count", model, so_far)


def requests(
    ledger: Ledger, model: str, classes: Mapping[str, Ledger] | None = None
) -> Iterator[str]:
    """Yield the counts of requests and of their deadlines.

    `classes` are part of the ledger, by their labels.
    """
    parts = classes or {}
    yield head("requests_received_total", "counter", "Valid inference requests received.")
    rest = ledger.received - sum(one.received for one in parts.values())
    yield sample("requests_received_total", model, rest)
    for labels, one in parts.items():
        yield sample("requests_received_total", labels, one.received)
    yield head(
        "requests_retried_total",
        "counter",
        "Received requests whose headers say that they were sent before.",
    )
    rest = ledger.retried - sum(one.retried for one in parts.values())
    yield sample("requests_retried_total", model, rest)
    for labels, one in parts.items():
        yield sample("requests_retried_total", labels, one.retried)
    yield head("requests_total", "counter", "Ended requests, by outcome.")
    for outcome in Outcome:
        rest = ledger.outcomes[outcome] - sum(one.outcomes[outcome] for one in parts.values())
        yield sample("requests_total", f'{model},outcome="{outcome}"', rest)
        for labels, one in parts.items():
            yield sample("requests_total", f'{labels},outcome="{outcome}"', one.outcomes[outcome])
    yield from counters(
        "requests_refused_total", "Refused requests, by reason.", model, "reason", ledger.refusals
    )
    yield INVALID
    yield from invalid(f"{model},", ledger.invalid)
    for name, meaning, total in (
        (
            "deadlines_met_total",
            "Requests with a deadline that were answered in time.",
            ledger.deadlines_met,
        ),
        (
            "deadlines_missed_total",
            "Requests with a deadline that were refused, expired, failed or late.",
            ledger.deadlines_missed,
        ),
    ):
        yield head(name, "counter", meaning)
        yield sample(name, model, total)
