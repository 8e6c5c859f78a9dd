"""Peaks at equal distances form a series if chance would not, and then predict the next one. Pure.

Three that are punctual are such a series, or five whose distances vary by a seventh. How early or
late the next one may be follows from how early or late the earlier ones were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroom.scaling.forecast.peak import LEAST_DISTANCE_S, Peak

PUNCTUAL, LOOSE = 0.01, 0.14
"""Largest deviation of a peak from its time over the distance of peaks: of punctual peaks, and of
others. Peaks 7 % early or late on a regular grid have distances that differ by up to 14 %."""
LEAST_TOLERANCE_S = 10.0
SHORTEST_SERIES = 3
LONGEST_SERIES = 12
"""Older peaks say nothing about how punctual the next one is."""
MOST_BY_CHANCE = 0.1
"""A series counts if this many peaks at random times had fewer such series on average."""
UNKNOWN = 5.0
"""Over the number of peaks: margin of the largest error. Worked: five peaks, twice."""
USUAL_SHARE = 0.8
"""Quantile of the earlier peaks for which replicas wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedPeak:
    """The next peak of a series."""

    at_s: float
    tolerance_s: float
    """Most by which it may be early or late."""
    rate_rps: float

    def is_met_by(self, peak: Peak) -> bool:
        """Return whether this peak is the expected one."""
        return abs(peak.began_s - self.at_s) <= self.tolerance_s


def next_peak(peaks: Sequence[Peak]) -> tuple[ExpectedPeak, ...]:
    """Return the next peak, if the latest one ends a series that is unlikely by chance.

    The longer series, whose peaks need not be punctual, counts first: among peaks near a grid,
    some are punctual by chance. The shortest distance that passes counts.
    """
    for share in (LOOSE, PUNCTUAL):
        for latest in reversed(peaks[:-1]):
            distance_s = peaks[-1].began_s - latest.began_s
            series = _series(peaks, distance_s, share)
            if len(series) >= SHORTEST_SERIES and _by_chance(peaks, series, share) < MOST_BY_CHANCE:
                return (_following(series, share),)
    return ()


def _tolerance_s(distance_s: float, share: float) -> float:
    return max(LEAST_TOLERANCE_S, share * distance_s)


def _series(peaks: Sequence[Peak], distance_s: float, share: float) -> list[Peak]:
    """Return the latest peak and those one distance before each other, newest first.

    The distance is the mean of those found so far: that of two peaks alone is known badly. A peak
    belongs to them one distance before the last one, or where the line through them leads.
    """
    series = [peaks[-1]]
    while len(series) < LONGEST_SERIES:
        tolerance_s = _tolerance_s(distance_s, share)
        dues_s = [series[-1].began_s - distance_s]
        if len(series) >= SHORTEST_SERIES:
            dues_s.append(_line(series)[0] - distance_s)
        near = [_nearest(peaks, due_s) for due_s in dues_s]
        late_s = [abs(one.began_s - due_s) for one, due_s in zip(near, dues_s, strict=True)]
        if min(late_s) > tolerance_s:
            return series
        series.append(near[late_s.index(min(late_s))])
        distance_s = _distance_s(series)
    return series


def _nearest(peaks: Sequence[Peak], time_s: float) -> Peak:
    return min(peaks, key=lambda peak: abs(peak.began_s - time_s))


def _line(series: Sequence[Peak]) -> tuple[float, float, float]:
    """Fit the times by their places; return the first, the last, and the largest error."""
    times_s = np.array([peak.began_s for peak in reversed(series)])
    places = np.arange(len(times_s)) - (len(times_s) - 1) / 2
    slope_s = float(np.dot(places, times_s) / np.dot(places, places))
    fitted_s = times_s.mean() + slope_s * places
    return float(fitted_s[0]), float(fitted_s[-1]), float(np.abs(times_s - fitted_s).max())


def _by_chance(peaks: Sequence[Peak], series: Sequence[Peak], share: float) -> float:
    """Return how many series as long as this one peaks at random times would have on average.

    Of n peaks at random times in the T seconds before the latest, none within 120 s after another,
    one is within the tolerance of a given instant with probability q = 2 tolerance n / (T - 120 n).
    So p distances that fit twice into T give p q^(k - 2) series of k by chance. Worked: two peaks
    20 and 40 minutes before, at 12 s: q = 0.02, p = 1. Five peaks 10 minutes apart, at 84 s: q =
    0.35, p = 2, 0.09 series.
    """
    latest_s, number = peaks[-1].began_s, len(peaks) - 1
    watched_s = latest_s - peaks[0].began_s
    tolerance_s = _tolerance_s(_distance_s(series), share)
    fitting = sum(2 * (latest_s - one.began_s) <= watched_s + tolerance_s for one in peaks[:-1])
    free_s = max(1.0, watched_s - LEAST_DISTANCE_S * number)
    meeting = min(1.0, 2 * tolerance_s * number / free_s)
    return float(fitting * meeting ** (len(series) - 2))


def _distance_s(series: Sequence[Peak]) -> float:
    return (series[0].began_s - series[-1].began_s) / (len(series) - 1)


def _following(series: Sequence[Peak], share: float) -> ExpectedPeak:
    """Return the peak that follows the series (newest first).

    Either one distance after the latest, or where the line through all of them leads: a timer that
    starts late keeps its next time, a loop with a pause does not. The better one for the earlier
    peaks counts, and its largest error becomes the tolerance, with a margin for what so few peaks
    do not show: of k earlier errors the next exceeds the largest with probability 1 / (k + 1), and
    a line through five points errs 1.45 times as much beyond them as it varies.
    """
    rates_rps = sorted(peak.size_rps for peak in series)
    rate_rps = rates_rps[math.ceil(USUAL_SHARE * len(rates_rps)) - 1]
    distance_s = _distance_s(series)
    at_s, tolerance_s = series[0].began_s + distance_s, _tolerance_s(distance_s, share)
    if share == LOOSE:
        gaps_s = np.diff([peak.began_s for peak in reversed(series)])
        pause_error_s = float(np.abs(gaps_s - distance_s).max())
        _, last_s, timer_error_s = _line(series)
        if timer_error_s < pause_error_s:
            at_s = last_s + distance_s
        error_s = min(timer_error_s, pause_error_s) * (1 + UNKNOWN / len(series))
        tolerance_s = min(tolerance_s, max(_tolerance_s(distance_s, PUNCTUAL), error_s))
    return ExpectedPeak(at_s=at_s, tolerance_s=tolerance_s, rate_rps=rate_rps)
