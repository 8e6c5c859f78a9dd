"""Sliding windows over the pods' cumulative counters: arrived, missed and answered requests.

The counters of each pod are one monotone series, so a window is the difference of two points: no
rate is ever negative, and a lost scrape costs resolution, not requests.

Three rules distinguish missing from zero. A ready pod without new scrapes keeps its last window,
and counts with at least what the others take (`unscraped`). A deleted pod counts with the requests
that it took until then. A new pod counts from zero only if it was created after the first tick;
otherwise its first scrape is a baseline.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from headroom.scaling.frozen import replace
from headroom.scaling.values.observation import Observation, PodSample
from headroom.scaling.windows.counter_series import (
    HORIZON_S,
    LATENCY,
    STABLE_WINDOWS,
    CounterSeries,
)
from headroom.scaling.windows.sample_intake import (
    GAP_S,
    append_samples,
    counters_of,
    gap_until,
    grid_of,
    newer_samples,
    on_grid,
    rejected_sample,
)
from headroom.scaling.windows.window_counts import WindowCounts


@dataclass(frozen=True, kw_only=True, eq=False)
class Windows(WindowCounts):
    """The series of all pods up to the last observation; immutable, replaced at each tick."""

    since_s: float | None = None
    """Time of the first tick; None before it."""
    horizon_s: float = HORIZON_S
    """Length of the kept history."""
    kept_since_s: float = -math.inf
    """Instant before which nothing is kept: the horizon was shorter until then."""
    last: Mapping[str, PodSample] = field(default_factory=dict)
    """The newest sample of each tracked pod."""
    seen_s: float | None = None
    """The last tick with a new sample of any pod; None before it."""
    gap_s: tuple[float, float] = (-math.inf, -math.inf)
    """Begin and end of the last gap in the samples of all pods in which pods became ready: what
    single ones took in it is not known."""

    def absorb(self, observation: Observation, longest_s: float = 0.0) -> Windows:
        """Return the windows with this tick's samples; older or repeated samples change nothing.

        History is kept for windows of `longest_s`, and for the usual ones.
        """
        horizon_s = max(HORIZON_S, STABLE_WINDOWS * longest_s)
        now_s = observation.now_s
        bounds_s = grid_of(observation.samples, self.bounds_s)
        samples = (*rejected_sample(observation, bounds_s), *observation.samples)
        series, last = self.series, dict(self.last)
        if bounds_s is not self.bounds_s:
            # Another grid cannot be subtracted from this one: start again (a server upgrade).
            series, last = CounterSeries.empty(LATENCY + len(bounds_s)), {}
        gone = {
            uid for uid in last.keys() - observation.uids if now_s - last[uid].time_s > horizon_s
        }
        if gone:
            series = series.without(gone)
            last = {uid: sample for uid, sample in last.items() if uid not in gone}
        newer = newer_samples(samples, last, bounds_s)
        last |= newer
        gap_s = self.gap_s
        if newer and self.seen_s is not None and now_s - self.seen_s > GAP_S:
            gap_s = gap_until(observation, self.series) or gap_s
        series = append_samples(series, newer, observation.pods, self.since_s, gap_s, horizon_s)
        ends_s, ready = series.times_s[-1], frozenset(observation.ready_uids)
        if not ready.issuperset(series.columns):
            held = [uid in ready for uid in series.columns]
            ends_s = np.where(held, ends_s, np.maximum(ends_s, now_s))
        return Windows(
            since_s=now_s if self.since_s is None else self.since_s,
            horizon_s=horizon_s,
            kept_since_s=max(self.kept_since_s, now_s - self.horizon_s)
            if horizon_s > self.horizon_s
            else self.kept_since_s,
            bounds_s=bounds_s,
            series=series,
            last=last,
            ends_s=ends_s,
            seen_s=now_s if newer else self.seen_s,
            gap_s=gap_s,
        )

    def rebased(self, samples: Sequence[PodSample]) -> Windows:
        """Return the windows as if these samples were the last of their pods; nothing is added."""
        samples = [on_grid(one, self.bounds_s) for one in samples if one.pod in self.series.columns]
        if not samples:
            return self
        series = self.series.rebased([one.pod for one in samples], counters_of(samples))
        return replace(self, series=series, last={**self.last, **{one.pod: one for one in samples}})

    def repeating(self, samples: Iterable[PodSample]) -> Windows:
        """Return the windows where the clock shows a time for the second time: its samples are new.

        What they count came in no time of the windows, and later would look like a burst.
        """
        known = [(one, self.last[one.pod]) for one in samples if one.pod in self.last]
        return self.rebased(
            [
                replace(one, time_s=last.time_s)
                for one, last in known
                if one.time_s <= last.time_s and one.arrivals >= last.arrivals
            ]
        )

    def unseen_s(self, observation: Observation) -> float:
        """Return for how long no pod was scraped, if one is that counted requests since; else 0.

        A page that stayed the same (`RepeatedPages`) counted none: nothing in it has jumped.
        """
        if self.seen_s is None or observation.now_s - self.seen_s <= GAP_S:
            return 0.0
        known = [(one, self.last[one.pod]) for one in observation.samples if one.pod in self.last]
        counted = [one.arrivals != last.arrivals for one, last in known if one.time_s > last.time_s]
        return observation.now_s - self.seen_s if any(counted) else 0.0

    def watched_s(self, now_s: float, window_s: float) -> float:
        """Seconds of the window since the first tick that are kept; 0 at the first tick."""
        if self.since_s is None:
            return 0.0
        return min(window_s, max(0.0, now_s - max(self.since_s, self.kept_since_s)))

    def latest(self, replicas: Iterable[str]) -> list[PodSample]:
        """Return the newest sample of each of these replicas that has one, in the same order."""
        return list(filter(None, map(self.last.get, replicas)))
