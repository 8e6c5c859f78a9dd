"""PURE. The server's metrics as Prometheus text. Names and labels are an API.

Text is written directly: the client library needs 3 ms for the same samples, ten times as long, and
a scrape runs on the loop that serves requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headroom_server.caching.cache import AnswerSource, CacheCounts
from headroom_server.lifecycle import STARTUP, Phase
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.telemetry.accounting import Ledger, Outcome
from headroom_server.telemetry.histograms import Histogram, label

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class DeviceStatus(NamedTuple):
    """One device of a model."""

    busy_s: float
    fit: bool
    """Whether it executes what it is given: it is not lost, does not hang, does not fail all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The data of a scrape, from one instant."""

    model: str
    engine: str
    device: str
    emulated: bool
    ledger: Ledger
    waiting: int
    oldest_waiting_s: float
    delay_s: float | None
    """Predicted wait of a request arriving now; None until warm-up has timed batches."""
    saturation: float | None
    """Predicted time to the response over recent deadlines; None without deadlines."""
    max_batch_size: int
    cost: CostModel | None
    """None until warm-up has timed batches; then the series are absent, not zero."""
    ready: bool
    draining: bool
    phase_s: Mapping[Phase, float]
    budget_share: float
    devices: Sequence[DeviceStatus]
    version: str | None = None
    """Set if several versions of the model are served."""
    page: int = 1
    """Number of this scrape since the process started."""
    cache: CacheCounts | None = None
    """None without a cache; then the series are absent."""


def render(snapshot: Snapshot) -> bytes:
    """Render the exposition text, format 0.0.4."""
    return "".join(_lines(snapshot)).encode()


def render_all(snapshots: Sequence[Snapshot], unattributed: Mapping[str, int]) -> bytes:
    """Render several models: each family once, with the samples of all.

    `unattributed` are invalid requests by reason that belong to no model; they have no label
    `model`.
    """
    if len(snapshots) == 1 and not unattributed:
        return render(snapshots[0])
    families: dict[str, list[str]] = {_INVALID: _invalid("", unattributed)}
    for snapshot in snapshots:
        for chunk in "".join(_lines(snapshot)).split("# HELP ")[1:]:
            meaning, kind, samples = chunk.split("\n", 2)
            families.setdefault(f"# HELP {meaning}\n{kind}\n", []).append(samples)
    return "".join(head + "".join(samples) for head, samples in families.items()).encode()


def _lines(snapshot: Snapshot) -> Iterator[str]:
    ledger, model = snapshot.ledger, f'model="{snapshot.model}"'
    if snapshot.version is not None:
        model += f',version="{snapshot.version}"'
    yield _head("requests_received_total", "counter", "Valid inference requests received.")
    yield _sample("requests_received_total", model, ledger.received)
    yield _head(
        "requests_retried_total",
        "counter",
        "Received requests whose headers say that they were sent before.",
    )
    yield _sample("requests_retried_total", model, ledger.retried)
    yield _head("requests_total", "counter", "Ended requests, by outcome.")
    for outcome in Outcome:
        labels = f'{model},outcome="{outcome}"'
        yield _sample("requests_total", labels, ledger.outcomes[outcome])
    yield from _counters(
        "requests_refused_total", "Refused requests, by reason.", model, "reason", ledger.refusals
    )
    yield _INVALID
    yield from _invalid(f"{model},", ledger.invalid)
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
        yield _head(name, "counter", meaning)
        yield _sample(name, model, total)
    yield from _devices(snapshot, model)
    yield from _counters(
        "device_wasted_seconds_total",
        "Device seconds that served no request, by reason.",
        model,
        "why",
        ledger.wasted_s,
    )
    yield from _counters(
        "batch_close_total", "Batches, by why they were closed.", model, "reason", ledger.closed
    )
    for name, meaning, value in _gauges(snapshot):
        yield _head(name, "gauge", meaning)
        yield _sample(name, model, value)
    if snapshot.cache is not None:
        yield from _cache(snapshot.cache, model)
    yield _head("scrapes_total", "counter", "Scrapes served so far.")
    yield _sample("scrapes_total", model, snapshot.page)
    yield _head("startup_phase_seconds", "gauge", "Seconds per startup phase.")
    for phase in STARTUP:
        if phase in snapshot.phase_s:
            seconds = snapshot.phase_s[phase]
            yield _sample("startup_phase_seconds", f'{model},phase="{phase}"', seconds)
    yield from _histogram(
        "request_duration_seconds", "Time from request to response.", model, ledger.request_s
    )
    yield from _histogram(
        "queue_duration_seconds", "Time from arrival to batch.", model, ledger.queue_s
    )
    yield from _histogram(
        "execution_duration_seconds", "Execution time per batch.", model, ledger.execution_s
    )
    yield from _histogram("batch_size", "Items per batch.", model, ledger.batch_size)
    yield from _histogram(
        "padding_ratio", "Share of a batch that is padding.", model, ledger.padding
    )
    yield _head("batch_stage_duration_seconds", "histogram", "Duration of each stage of a batch.")
    for stage, histogram in ledger.stage_s.items():
        labels = f'{model},stage="{stage}"'
        yield from _buckets("batch_stage_duration_seconds", labels, histogram)
    yield _head("engine_info", "gauge", "Engine and device that execute the batches.")
    emulated = "true" if snapshot.emulated else "false"
    labels = f'{model},engine="{snapshot.engine}",device="{snapshot.device}",emulated="{emulated}"'
    yield _sample("engine_info", labels, 1)


def _gauges(snapshot: Snapshot) -> Iterator[tuple[str, str, float]]:
    running = snapshot.ledger.in_flight - snapshot.waiting
    yield "requests_waiting", "Accepted requests that wait for a batch.", snapshot.waiting
    yield "requests_running", "Requests in a batch.", running
    yield "oldest_waiting_seconds", "Age of the oldest waiting request.", snapshot.oldest_waiting_s
    yield "max_batch_size", "Maximum items per batch.", snapshot.max_batch_size
    yield (
        "batch_budget_ratio",
        "Share of max_batch_size that memory allows at once.",
        snapshot.budget_share,
    )
    if snapshot.delay_s is not None:
        yield (
            "predicted_queue_delay_seconds",
            "Predicted wait of a request arriving now.",
            snapshot.delay_s,
        )
    if snapshot.saturation is not None:
        yield (
            "saturation",
            "Predicted time to response over recent mean deadline.",
            snapshot.saturation,
        )
    if snapshot.cost is not None:
        yield (
            "cost_fixed_seconds",
            "Seconds per batch, independent of its items.",
            snapshot.cost.fixed_s,
        )
        yield "cost_per_item_seconds", "Additional seconds per item.", snapshot.cost.per_item_s
        # if none is healthy, the capacity they would have: `ready` reports the outage
        fit = sum(one.fit for one in snapshot.devices) or len(snapshot.devices)
        capacity = fit * snapshot.cost.throughput(snapshot.max_batch_size)
        yield (
            "cost_residual_p95_ratio",
            "95th percentile of measured over predicted batch time, minus 1.",
            snapshot.cost.tail,
        )
        yield "capacity_requests_per_second", "Items per second at full batches.", capacity
    yield "ready", "1 if warm and not draining.", int(snapshot.ready)
    yield "draining", "1 after SIGTERM.", int(snapshot.draining)


def _devices(snapshot: Snapshot, model: str) -> Iterator[str]:
    """Busy seconds; with the label `device`, and their health, only if there are several."""
    yield _head("device_busy_seconds_total", "counter", "Seconds in which batches were executed.")
    if len(snapshot.devices) == 1:
        yield _sample("device_busy_seconds_total", model, snapshot.ledger.busy_s)
        return
    labels = [f'{model},device="{number}"' for number in range(len(snapshot.devices))]
    for one, seen in zip(labels, snapshot.devices, strict=True):
        yield _sample("device_busy_seconds_total", one, seen.busy_s)
    yield _head("device_healthy", "gauge", "1 if the device executes its batches successfully.")
    for one, seen in zip(labels, snapshot.devices, strict=True):
        yield _sample("device_healthy", one, int(seen.fit))


def _cache(counts: CacheCounts, model: str) -> Iterator[str]:
    hits = {
        source: n for source, n in counts.by_source.items() if source is not AnswerSource.DEVICE
    }
    yield from _counters(
        "cache_hits_total", "Requests answered from the cache, by level.", model, "level", hits
    )
    series: list[tuple[str, str, str, int]] = [
        (
            "cache_misses_total",
            "counter",
            "Requests that had to be executed.",
            counts.by_source[AnswerSource.DEVICE],
        ),
        ("cache_evictions_total", "counter", "Answers evicted to make room.", counts.evicted),
        ("cache_bytes", "gauge", "Bytes of cached answers.", counts.size),
        ("cache_entries", "gauge", "Cached answers.", counts.entries),
    ]
    if counts.store_failures is not None:
        failures, asked = counts.store_failures, int(counts.store_asked)
        series += [
            (
                "cache_redis_failures_total",
                "counter",
                "Redis calls that failed or were late.",
                failures,
            ),
            (
                "cache_redis_enabled",
                "gauge",
                "1 if Redis is used, 0 while it is paused after failures.",
                asked,
            ),
        ]
    for name, kind, meaning, value in series:
        yield _head(name, kind, meaning)
        yield _sample(name, model, value)


def _counters(
    name: str, meaning: str, model: str, key: str, values: Mapping[Any, float]
) -> Iterator[str]:
    yield _head(name, "counter", meaning)
    for value, count in values.items():
        yield _sample(name, f'{model},{key}="{value}"', count)


def _head(name: str, kind: str, meaning: str) -> str:
    return f"# HELP headroom_{name} {meaning}\n# TYPE headroom_{name} {kind}\n"


_INVALID = _head(
    "requests_invalid_total", "counter", "Invalid requests, by reason; not counted as received."
)


def _invalid(labels: str, counts: Mapping[str, int]) -> list[str]:
    return [
        _sample("requests_invalid_total", f'{labels}reason="{reason}"', count)
        for reason, count in sorted(counts.items())
    ]


def _sample(name: str, labels: str, value: float) -> str:
    return f"headroom_{name}{{{labels}}} {value}\n"


def _histogram(name: str, meaning: str, model: str, histogram: Histogram) -> Iterator[str]:
    yield _head(name, "histogram", meaning)
    yield from _buckets(name, model, histogram)


def _buckets(name: str, model: str, histogram: Histogram) -> Iterator[str]:
    bucket = f"headroom_{name}_bucket{{{model},le="
    so_far = 0
    for bound, count in zip(histogram.bounds, histogram.counts, strict=False):
        so_far += count
        yield f'{bucket}"{label(bound)}"}} {so_far}\n'
    so_far += histogram.counts[-1]
    yield f'{bucket}"+Inf"}} {so_far}\n'
    yield _sample(f"{name}_sum", model, histogram.total)
    yield _sample(f"{name}_count", model, so_far)
