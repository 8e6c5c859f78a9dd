"""What a pod had counted before it took requests: warming it is no load, no broken promise. Pure.

A server counts the requests that warm it like any other. The page that it shows just before its
readiness gate opens says how many they were, and samples give what came after them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headroom.scaling.values import LatencyCounts, PodSample
from headroom.telemetry.accounts import Account
from headroom.telemetry.reading import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Counters of one process at the moment from which on they count."""

    arrivals: float
    missed: float
    batches: float
    batch_items: float
    batch_seconds: float
    latency: LatencyCounts | None
    """None: no request had ended, or none is timed."""


def baseline_of(reading: Reading, account: Account) -> Baseline:
    """Give the counters of a page."""
    return Baseline(
        arrivals=account.arrivals,
        missed=reading.missed or 0.0,
        batches=account.batches,
        batch_items=account.batch_items,
        batch_seconds=account.batch_seconds,
        latency=reading.latency,
    )


def since(baseline: Baseline, sample: PodSample) -> PodSample | None:
    """Give a sample of what came after the baseline; None where the process is another by now."""
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
