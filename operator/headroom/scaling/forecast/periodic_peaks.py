"""Detects peaks at regular times, such as cron jobs, and predicts the next one.

Timers start much of real load: 29 % of the functions in Shahrad et al. 2020 (Serverless in the
Wild). A peak shorter than a cold start is lost unless replicas wait for it. Three peaks at equal
distances are a timer if peaks at random times would hardly form such a series; the next one is
expected one distance after the latest. If it does not come, the series ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

LEAST_DISTANCE_S = 120.0
"""Between two peaks."""
LONGEST_S = 600.0
"""A longer rise is the new load, not a peak."""
KEPT = 64
TOLERANCE_S, TOLERANCE = 10.0, 0.01
"""How far from its time a peak may come: 10 s, or 1 % of the distance."""
SHORTEST_SERIES = 3
MOST_BY_CHANCE = 0.05
"""A series counts if this many peaks at random times had fewer such series on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """A rise that stood out, until half of it was gone."""

    began_s: float
    before_rps: float
    peak_rps: float
    """The largest rate of the stable window during the peak."""
    over: bool = False

    def update(self, now_s: float, rate_rps: float, window_s: float) -> Peak:
        """Return the peak with this instant added, or marked as over."""
        peak_rps, length_s = max(self.peak_rps, rate_rps), now_s - self.began_s
        fallen = length_s > 2 * window_s and rate_rps < (self.before_rps + peak_rps) / 2
        if fallen or length_s > LONGEST_S:
            return replace(self, peak_rps=peak_rps, over=True)
        return self if peak_rps == self.peak_rps else replace(self, peak_rps=peak_rps)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedPeak:
    """The next peak of a series."""

    at_s: float
    tolerance_s: float
    """How early or late it may be."""
    rate_rps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicPeaks:
    """The observed peaks, oldest first, and the expected ones."""

    peaks: tuple[Peak, ...] = ()
    expected: tuple[ExpectedPeak, ...] = ()

    def observe(
        self, now_s: float, rate_rps: float, stands_out: bool, window_s: float
    ) -> PeriodicPeaks:
        """Return the record with this instant's rate (of a window this long) added."""
        latest = self.peaks[-1] if self.peaks else None
        if latest is not None and not latest.over:
            going = latest.update(now_s, rate_rps, window_s)
            if going is latest:
                return self
            peaks = (*self.peaks[:-1], going)
            expected = (*self._open(now_s), *next_peak(peaks)) if going.over else self.expected
            return PeriodicPeaks(peaks=peaks, expected=expected)
        if not stands_out or (latest is not None and now_s - latest.began_s < LEAST_DISTANCE_S):
            return self
        new = Peak(began_s=now_s, before_rps=rate_rps, peak_rps=rate_rps)
        return replace(self, peaks=(*self.peaks[1 - KEPT :], new))

    def _open(self, now_s: float) -> Iterable[ExpectedPeak]:
        return (
            expected for expected in self.expected if now_s < expected.at_s + expected.tolerance_s
        )

    def expected_rps(self, now_s: float, within_s: float) -> float:
        """Return the largest rate expected within this time; 0 if no peak is."""
        return max(
            (
                expected.rate_rps
                for expected in self._open(now_s)
                if now_s + within_s >= expected.at_s - expected.tolerance_s
            ),
            default=0.0,
        )


def next_peak(peaks: Sequence[Peak]) -> tuple[ExpectedPeak, ...]:
    """Return the next peak, if the latest one ends a series that is unlikely by chance.

    Of n peaks at random times in the T seconds before the latest, one is within the tolerance of a
    given instant with probability q = 2 tolerance n / T. So p distances that fit twice into T give
    p q^(k - 2) series of k by chance. Worked: two peaks 20 and 40 minutes before, at 12 s: q =
    0.02, p = 1. The shortest distance that passes counts.
    """
    latest, before = peaks[-1], peaks[:-1]
    if len(before) < SHORTEST_SERIES - 1:
        return ()
    watched_s = latest.began_s - before[0].began_s
    distances_s = [latest.began_s - one.began_s for one in reversed(before)]
    fitting = sum(2 * distance_s <= watched_s + TOLERANCE_S for distance_s in distances_s)
    for distance_s in distances_s:
        tolerance_s = max(TOLERANCE_S, TOLERANCE * distance_s)
        series = _series(peaks, distance_s, tolerance_s)
        meeting = min(1.0, 2 * tolerance_s * len(before) / watched_s)
        by_chance = fitting * meeting ** (len(series) - 2)
        if len(series) >= SHORTEST_SERIES and by_chance < MOST_BY_CHANCE:
            rates_rps = sorted(peak.peak_rps for peak in series)
            usual_rps = rates_rps[len(rates_rps) // 2]
            at_s = latest.began_s + distance_s
            return (ExpectedPeak(at_s=at_s, tolerance_s=tolerance_s, rate_rps=usual_rps),)
    return ()


def _series(peaks: Sequence[Peak], distance_s: float, tolerance_s: float) -> list[Peak]:
    """Return the latest peak and those one distance before each other, newest first."""
    series = [peaks[-1]]
    while True:
        due_s = series[-1].began_s - distance_s
        near = [peak for peak in peaks if abs(peak.began_s - due_s) <= tolerance_s]
        if not near:
            return series
        series.append(min(near, key=lambda peak: abs(peak.began_s - due_s)))
