"""The server's metrics as Prometheus text. Names and labels are an API. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headroom_server.caching.cache import CacheCounts
from headroom_server.caching.flights import Source
from headroom_server.lifecycle import STARTUP
from headroom_server.telemetry import cache_metrics
from headroom_server.telemetry.accounting import Ledger
from headroom_server.telemetry.exposition import (
    INVALID,
    buckets,
    counters,
    head,
    histogram,
    invalid,
    requests,
    sample,
)
from headroom_server.telemetry.snapshot import Snapshot


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
    families: dict[str, list[str]] = {INVALID: invalid("", unattributed)}
    for snapshot in snapshots:
        for chunk in "".join(_lines(snapshot)).split("# HELP ")[1:]:
            meaning, kind, samples = chunk.split("\n", 2)
            families.setdefault(f"# HELP {meaning}\n{kind}\n", []).append(samples)
    return "".join(begun + "".join(samples) for begun, samples in families.items()).encode()


def _lines(snapshot: Snapshot) -> Iterator[str]:
    ledger, model = snapshot.ledger, f'model="{snapshot.model}"'
    if snapshot.version is not None:
        model += f',version="{snapshot.version}"'
    yield from requests(ledger, model)
    yield from _devices(snapshot, model)
    yield from counters(
        "device_wasted_seconds_total",
        "Device seconds that served no request, by reason.",
        model,
        "why",
        ledger.wasted_s,
    )
    yield from counters(
        "batch_close_total", "Batches, by why they were closed.", model, "reason", ledger.closed
    )
    for name, meaning, value in _gauges(snapshot):
        yield head(name, "gauge", meaning)
        yield sample(name, model, value)
    if snapshot.cache is not None:
        yield from _cache(snapshot.cache, model)
    if (found := snapshot.features) is not None:
        by_source = [("inputs", source, count) for source, count in found.by_source.items()]
        yield from cache_metrics.features(by_source, found.levels, model)
    if (shared := snapshot.cache or snapshot.features) is not None:
        yield from cache_metrics.second_level(shared.levels, model)
    yield head("scrapes_total", "counter", "Scrapes served so far.")
    yield sample("scrapes_total", model, snapshot.page)
    yield head("startup_phase_seconds", "gauge", "Seconds per startup phase.")
    for phase in STARTUP:
        if phase in snapshot.phase_s:
            seconds = snapshot.phase_s[phase]
            yield sample("startup_phase_seconds", f'{model},phase="{phase}"', seconds)
    yield from _histograms(ledger, model)
    yield head("engine_info", "gauge", "Engine and device that execute the batches.")
    emulated = "true" if snapshot.emulated else "false"
    labels = f'{model},engine="{snapshot.engine}",device="{snapshot.device}",emulated="{emulated}"'
    yield sample("engine_info", labels, 1)


def _histograms(ledger: Ledger, model: str) -> Iterator[str]:
    yield from histogram(
        "request_duration_seconds", "Time from request to response.", model, ledger.request_s
    )
    yield from histogram(
        "queue_duration_seconds", "Time from arrival to batch.", model, ledger.queue_s
    )
    yield from histogram(
        "execution_duration_seconds", "Execution time per batch.", model, ledger.execution_s
    )
    yield from histogram("batch_size", "Items per batch.", model, ledger.batch_size)
    yield from histogram(
        "padding_ratio", "Share of a batch that is padding.", model, ledger.padding
    )
    yield head("batch_stage_duration_seconds", "histogram", "Duration of each stage of a batch.")
    for stage, durations in ledger.stage_s.items():
        labels = f'{model},stage="{stage}"'
        yield from buckets("batch_stage_duration_seconds", labels, durations)


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
    yield head("device_busy_seconds_total", "counter", "Seconds in which batches were executed.")
    if len(snapshot.devices) == 1:
        yield sample("device_busy_seconds_total", model, snapshot.ledger.busy_s)
        return
    labels = [f'{model},device="{number}"' for number in range(len(snapshot.devices))]
    for one, seen in zip(labels, snapshot.devices, strict=True):
        yield sample("device_busy_seconds_total", one, seen.busy_s)
    yield head("device_healthy", "gauge", "1 if the device executes its batches successfully.")
    for one, seen in zip(labels, snapshot.devices, strict=True):
        yield sample("device_healthy", one, int(seen.fit))


def _cache(counts: CacheCounts, model: str) -> Iterator[str]:
    hits = {source: n for source, n in counts.by_source.items() if source is not Source.COMPUTED}
    yield from cache_metrics.answers(hits, counts.by_source[Source.COMPUTED], counts.levels, model)
