"""Detects peaks at regular times, such as cron jobs, and predicts the next one.

Timers start much of real load: 29 % of the functions in Shahrad et al. 2020 (Serverless in the
Wild). A peak shorter than a cold start is lost unless replicas wait for it. Peaks at equal
distances are a timer if peaks at random times would hardly form such a series (`peak_series`). If
the next one does not come, the series ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headroom.scaling.forecast.peak import LEAST_DISTANCE_S, Peak
from headroom.scaling.forecast.peak_series import ExpectedPeak, next_peak
from headroom.scaling.frozen import replace

KEPT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicPeaks:
    """The observed peaks, oldest first, and the expected ones."""

    peaks: tuple[Peak, ...] = ()
    expected: tuple[ExpectedPeak, ...] = ()

    def observe(
        self, now_s: float, rate_rps: float, burst_rps: float | None, window_s: float
    ) -> PeriodicPeaks:
        """Return the record with this instant's rate (of a window this long) added.

        `burst_rps`: the rate of a short window that stands out; None if none does.
        """
        latest = self.peaks[-1] if self.peaks else None
        if latest is not None and not latest.over:
            going = latest.update(now_s, rate_rps, burst_rps or 0.0, window_s)
            if going is latest:
                return self
            peaks = (*self.peaks[:-1], going)
            if not going.over:
                return PeriodicPeaks(peaks=peaks, expected=self.expected)
            others = (one for one in self._open(now_s) if not one.is_met_by(going))
            return PeriodicPeaks(peaks=peaks, expected=(*others, *next_peak(peaks)))
        if burst_rps is None or (latest is not None and now_s - latest.began_s < LEAST_DISTANCE_S):
            return self
        new = Peak(began_s=now_s, before_rps=rate_rps, peak_rps=rate_rps, burst_rps=burst_rps)
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
