"""The counters of a pod before it received traffic, so that warm-up requests do not count. Pure.

A server counts warm-up requests like any other. The page read just before the readiness gate opens
is the baseline; samples contain what came after it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import PodSample
from headroom.telemetry.pages.reading import Reading
from headroom.telemetry.samples.accounts import Account


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Counters of one process at the end of its warm-up."""

    arrivals: float
    missed: float
    batches: float
    batch_items: float
    batch_seconds: float
    latency: LatencyCounts | None
    """None if no request had ended or latency is not measured."""


def baseline_of(reading: Reading, account: Account) -> Baseline:
    """Return the baseline of a page."""
    return Baseline(
        arrivals=account.arrivals,
        missed=reading.missed or 0.0,
        batches=account.executed.batches,
        batch_items=account.executed.items,
        batch_seconds=account.executed.seconds,
        latency=reading.latency,
    )


def since(baseline: Baseline, sample: PodSample) -> PodSample | None:
    """Return the sample minus the baseline; None if the process has restarted since."""
    latency = sample.latency
    if baseline.latency is not None and latency.counts:
        if latency.bounds_s != baseline.latency.bounds_s:
            return None
        counts = zip(latency.counts, baseline.latency.counts, strict=True)
        latency = LatencyCounts(
            bounds_s=latency.bounds_s, counts=tuple(now - then for now, then in counts)
        )
    later = replace(
        sample,
        arrivals=sample.arrivals - baseline.arrivals,
        missed=max(0.0, sample.missed - baseline.missed),
        batches=sample.batches - baseline.batches,
        batch_items=sample.batch_items - baseline.batch_items,
        batch_seconds=max(0.0, sample.batch_seconds - baseline.batch_seconds),
        latency=latency,
    )
    counters = (later.arrivals, later.batches, later.batch_items, *latency.counts)
    return None if min(counters) < 0.0 else later
