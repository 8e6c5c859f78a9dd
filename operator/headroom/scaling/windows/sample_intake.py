"""Turns the samples of a tick into points of the counter series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import Struct

import numpy as np

from headroom.scaling.frozen import replace
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import Observation, Pod, PodSample
from headroom.scaling.windows.counter_series import LATENCY, CounterSeries
from headroom.scaling.windows.histogram import rebinned

GAP_S = 10.0
"""Gap without samples of all pods after which only the mean of each pod's requests is known."""
REJECTED = "rejected at the gateways"
"""The series of what no replica has counted: arrivals that missed."""


def rejected_sample(observation: Observation, bounds_s: tuple[float, ...]) -> Iterator[PodSample]:
    """Yield a point of the series; none in a tick without samples, which has no grid of its own."""
    rejected = observation.rejected_at_gateway
    if rejected is None or not observation.samples:
        return
    yield PodSample(
        pod=REJECTED,
        time_s=rejected.time_s,
        arrivals=rejected.requests,
        missed=rejected.requests,
        waiting=0,
        running=0,
        latency=LatencyCounts(bounds_s=bounds_s, counts=(0.0,) * len(bounds_s)),
    )


def grid_of(samples: Sequence[PodSample], known_s: tuple[float, ...]) -> tuple[float, ...]:
    """Return the histogram bounds of this tick: the known ones while any pod has them.

    During a rollout some pods have those of another version; all are counted on one grid.
    """
    grids = (sample.latency.bounds_s for sample in samples)
    if known_s and known_s in grids:
        return known_s
    return next(
        (one.latency.bounds_s for one in reversed(samples) if one.latency.bounds_s), known_s
    )


def on_grid(sample: PodSample, bounds_s: tuple[float, ...]) -> PodSample:
    """Return the sample with its histogram on this grid."""
    if sample.latency.bounds_s == bounds_s:
        return sample
    return replace(sample, latency=rebinned(sample.latency, bounds_s))


def newer_samples(
    samples: Iterable[PodSample], last: Mapping[str, PodSample], bounds_s: tuple[float, ...]
) -> dict[str, PodSample]:
    """Return the newest sample of each pod that is newer than its last, on this grid."""
    newer: dict[str, PodSample] = {}
    for sample in samples:
        pod = sample.pod
        before = newer.get(pod) or last.get(pod)
        if before is None or sample.time_s > before.time_s:
            alike = sample.latency.bounds_s is bounds_s
            newer[pod] = sample if alike else on_grid(sample, bounds_s)
    return newer


def gap_until(observation: Observation, series: CounterSeries) -> tuple[float, float] | None:
    """Return the gap that ends with this tick; None if no pod became ready in it."""
    if not series.columns:
        return None
    begin_s = float(series.times_s[-1].max())
    new = any(pod.ready_s is not None and pod.ready_s > begin_s for pod in observation.pods)
    return (begin_s, observation.now_s) if new else None


def append_samples(
    series: CounterSeries,
    newer: Mapping[str, PodSample],
    pods: Iterable[Pod],
    since_s: float | None,
    gap_s: tuple[float, float],
    horizon_s: float,
) -> CounterSeries:
    """Begin the series of new pods, at zero or at a baseline, and append to all others."""
    if not newer:
        return series.append_empty()
    uids, samples = list(newer), list(newer.values())
    times_s = np.array([sample.time_s for sample in samples])
    counters = counters_of(samples)
    if newer.keys() <= series.columns.keys():
        return series.append(uids, times_s, counters, horizon_s)
    new = [number for number, uid in enumerate(uids) if uid not in series.columns]
    shown = {pod.uid: pod for pod in pods}
    zeros_s = [_zero_s(samples[one], shown.get(uids[one]), since_s, gap_s) for one in new]
    baseline = np.array([zero_s is None for zero_s in zeros_s])
    series = series.add_pods(
        [uids[number] for number in new],
        np.where(baseline, times_s[new], [zero_s or 0.0 for zero_s in zeros_s]),
        np.where(baseline[:, np.newaxis], counters[new], 0.0),
    )
    counted = np.delete(np.arange(len(uids)), np.array(new)[baseline])
    return series.append(
        [uids[number] for number in counted], times_s[counted], counters[counted], horizon_s
    )


def _zero_s(
    sample: PodSample, pod: Pod | None, since_s: float | None, gap_s: tuple[float, float]
) -> float | None:
    """Return when a new pod's counters were zero; None unless it started after the first tick.

    Where it became ready in a gap, at the gap's begin: of the others only the mean of the gap is
    known, and requests that moved from them to this pod would count twice.
    """
    if pod is None or pod.ready_s is None or since_s is None or pod.created_s < since_s:
        return None
    if not pod.ready_s < sample.time_s:
        return None
    begin_s, end_s = gap_s
    return begin_s if begin_s < pod.ready_s < end_s else pod.ready_s


def counters_of(samples: Sequence[PodSample]) -> Vector:
    """Return the counters in the order of the series, [samples, counters].

    Packed by `struct`, which takes half the time of an array made from tuples.
    """
    latency = Struct(f"{len(samples[0].latency.counts)}d").pack
    parts: list[bytes] = []
    for s in samples:
        parts += (
            _pack(s.arrivals, s.missed, s.batches, s.batch_items, s.batch_seconds, s.retried),
            latency(*s.latency.counts),
        )
    return np.frombuffer(b"".join(parts)).reshape(len(samples), -1)


_pack = Struct(f"{LATENCY}d").pack
