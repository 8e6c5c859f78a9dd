"""Sliding windows over the pods' cumulative counters: what arrived, missed and was answered.

Each pod keeps its recent scrapes as one monotone series (a restarted process continues where the
old one stopped), so a window is the difference of two points: no rate is ever negative, and a
lost scrape costs resolution, not requests.

Three rules make missing differ from zero. A pod that is ready and silent keeps its last window: its
load is held, not forgotten. A pod that has gone counts with what it took until it went. A pod seen
for the first time counts from zero only if it was created under our eyes; otherwise its first
scrape is a baseline.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values import CostModel, Observation, PodSample, PodState

HORIZON_S = 75.0
"""Two stable windows and some ticks: what the two-window latency rule looks back on."""

Counters = NDArray[np.float64]
"""One scrape as a vector: the five counters below, then the latency buckets, [5 + bounds]."""
ARRIVALS, MISSED, BATCHES, BATCH_ITEMS, BATCH_SECONDS, LATENCY = 0, 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The recent monotone series of one pod, oldest first, and the scrape that ended it."""

    times_s: tuple[float, ...]
    points: tuple[Counters, ...]
    arrivals: tuple[float, ...]
    """Of each point; looked at several times a tick, where the whole vectors are not needed."""
    last: PodSample
    scraped: Counters
    """The last scrape as it was, before it continued the series."""

    def at(self, time_s: float) -> Counters:
        """Return the series at an instant: interpolated inside, constant before and after."""
        early, late, part = self._between(time_s)
        if early == late:
            return self.points[late]
        return self.points[early] + part * (self.points[late] - self.points[early])

    def arrivals_at(self, time_s: float) -> float:
        """Return the arrivals at an instant, as `at` does."""
        early, late, part = self._between(time_s)
        return self.arrivals[early] + part * (self.arrivals[late] - self.arrivals[early])

    def _between(self, time_s: float) -> tuple[int, int, float]:
        """Return the points around an instant and its share of the way between them."""
        late = bisect_right(self.times_s, time_s)
        if late == 0:
            return 0, 0, 0.0
        if late == len(self.times_s):
            return late - 1, late - 1, 0.0
        start_s, end_s = self.times_s[late - 1], self.times_s[late]
        return late - 1, late, (time_s - start_s) / (end_s - start_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTotal:
    """Requests of all pods within one window."""

    arrivals: float
    missed: float
    latency: NDArray[np.float64]
    """Cumulative per bound of the grid, [bounds]."""

    @property
    def ended(self) -> float:
        """Requests that ended within the window, well or badly."""
        return (float(self.latency[-1]) if len(self.latency) else 0.0) + self.missed


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """All pods' tracks; a value, replaced at each tick."""

    since_s: float | None = None
    """When watching began; None before the first tick."""
    tracks: Mapping[str, Track] = field(default_factory=dict)
    bounds_s: tuple[float, ...] = ()

    def absorb(self, observation: Observation) -> Windows:
        """Return the windows with this tick's samples; older or repeated samples change nothing."""
        now_s = observation.now_s
        pods = {pod.uid: pod for pod in observation.pods}
        tracks = {
            uid: track
            for uid, track in self.tracks.items()
            if uid in pods or now_s - track.last.time_s <= HORIZON_S
        }
        bounds_s = self.bounds_s
        for sample in observation.samples:
            if sample.latency.bounds_s != bounds_s:
                # Another grid cannot be subtracted from this one: begin anew (a server upgrade).
                tracks, bounds_s = {}, sample.latency.bounds_s
            known, pod = tracks.get(sample.pod), pods.get(sample.pod)
            if known is not None:
                tracks[sample.pod] = _continue(known, sample)
            elif pod and self.since_s is not None and pod.created_s >= self.since_s:
                tracks[sample.pod] = _begin(sample, zero_s=pod.ready_s)
            else:
                tracks[sample.pod] = _begin(sample, zero_s=None)
        since_s = now_s if self.since_s is None else self.since_s
        return Windows(since_s=since_s, tracks=tracks, bounds_s=bounds_s)

    def watched_s(self, now_s: float, window_s: float) -> float:
        """Seconds of the window that were watched; 0 at the first tick."""
        return 0.0 if self.since_s is None else min(window_s, max(0.0, now_s - self.since_s))

    def total(
        self, observation: Observation, window_s: float, *, ago_s: float = 0.0
    ) -> WindowTotal:
        """Sum over all pods what happened in the `window_s` seconds that ended `ago_s` ago."""
        ready = {pod.uid for pod in observation.pods if pod.state is PodState.READY}
        total = np.zeros(LATENCY + len(self.bounds_s))
        for uid, track in self.tracks.items():
            end_s = (track.last.time_s if uid in ready else observation.now_s) - ago_s
            total += track.at(end_s) - track.at(end_s - window_s)
        return WindowTotal(
            arrivals=float(total[ARRIVALS]), missed=float(total[MISSED]), latency=total[LATENCY:]
        )

    def arrivals(self, observation: Observation, window_s: float, *, ago_s: float = 0.0) -> float:
        """Return the arrivals of `total`, without the rest of it."""
        ready = {pod.uid for pod in observation.pods if pod.state is PodState.READY}
        arrived = 0.0
        for uid, track in self.tracks.items():
            end_s = (track.last.time_s if uid in ready else observation.now_s) - ago_s
            arrived += track.arrivals_at(end_s) - track.arrivals_at(end_s - window_s)
        return arrived

    def batch_means(self, now_s: float) -> Iterator[tuple[float, float, float]]:
        """Yield (batches, mean size, mean seconds) of each interval that ended at this tick.

        The mean of an affine cost is the cost of the mean, so pairs of means fit it unbiased.
        """
        for track in self.tracks.values():
            if len(track.points) < 2 or now_s - track.times_s[-1] > _SAME_TICK_S:
                continue
            step = track.points[-1] - track.points[-2]
            if step[BATCHES] >= 1:
                yield (
                    float(step[BATCHES]),
                    float(step[BATCH_ITEMS] / step[BATCHES]),
                    float(step[BATCH_SECONDS] / step[BATCHES]),
                )

    def advertised_cost(self) -> CostModel | None:
        """Return the slowest cost that a server measured at warm-up; None where none says."""
        costs = [t.last.cost for t in self.tracks.values() if t.last.cost is not None]
        return max(costs, key=lambda cost: cost.batch_s(cost.max_batch), default=None)


_SAME_TICK_S = 1.5
"""A scrape takes at most one second; what is older belongs to an earlier tick."""


def _vector(sample: PodSample) -> Counters:
    return np.array(
        (
            sample.arrivals,
            sample.missed,
            sample.batches,
            sample.batch_items,
            sample.batch_seconds,
            *sample.latency.counts,
        ),
        dtype=np.float64,
    )


def _begin(sample: PodSample, zero_s: float | None) -> Track:
    """Start a track at its first scrape, or from zero when the pod came up under our eyes."""
    point = _vector(sample)
    times_s, points = [sample.time_s], [point]
    if zero_s is not None and zero_s < sample.time_s:
        times_s, points = [zero_s, *times_s], [np.zeros_like(point), *points]
    return Track(
        times_s=tuple(times_s),
        points=tuple(points),
        arrivals=tuple(float(one[ARRIVALS]) for one in points),
        last=sample,
        scraped=point,
    )


def _continue(track: Track, sample: PodSample) -> Track:
    """Append a scrape; a counter that fell means that the process began again from zero."""
    if sample.time_s <= track.last.time_s:
        return track
    scraped = _vector(sample)
    step = scraped - track.scraped
    if (step < 0).any():
        step = scraped
    point = track.points[-1] + step
    first = bisect_right(track.times_s, sample.time_s - HORIZON_S)
    first = max(0, min(first - 1, len(track.times_s) - 1))
    return Track(
        times_s=(*track.times_s[first:], sample.time_s),
        points=(*track.points[first:], point),
        arrivals=(*track.arrivals[first:], float(point[ARRIVALS])),
        last=sample,
        scraped=scraped,
    )
