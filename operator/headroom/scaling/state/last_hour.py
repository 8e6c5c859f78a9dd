"""Checkpoint of the last hour: holds after flaps, and the basis of forecasts.

Windows restart, because time without observation proves nothing, and no replica is removed for one
hold. Then only what was learned in the last hour keeps replicas for a surge that returns: without
it, each upgrade of the operator would remove them, and each leader begin to learn again. Times are
kept as seconds before the last decision; what lies after the first one of the next process was
written by another clock, and is dropped.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headroom.scaling.forecast.analog_forecast import AnalogForecast
from headroom.scaling.forecast.forecast import Forecast
from headroom.scaling.forecast.peak import Peak
from headroom.scaling.forecast.peak_series import LONGEST_SERIES, next_peak
from headroom.scaling.forecast.periodic_peaks import PeriodicPeaks
from headroom.scaling.forecast.rate_history import STEP_S, RateHistory
from headroom.scaling.limits.flaps import EVERY, LONGEST_HOLD_S, Flaps
from headroom.scaling.limits.stabilization import SlidingExtreme
from headroom.scaling.values.checkpoint_numbers import Checkpoint, groups_of, short
from headroom.scaling.values.tuning import HOUR_S

MOST_FLAPS = 16
MOST_LEVELS = 16
RATE_EVERY = 3
"""Steps between two stored rates: a rate's window of 30 s."""
MOST_RATES = round(HOUR_S / STEP_S) // RATE_EVERY + 1
DIGITS = 4

Levels = Sequence[tuple[float, int]]
"""(time, replicas)."""


def _no_arrivals() -> SlidingExtreme:
    return SlidingExtreme(keep="largest")


@dataclass(frozen=True, slots=True, kw_only=True)
class LastHour:
    """The parts of the state that are learned in the last hour."""

    flaps: Flaps = field(default_factory=Flaps)
    arrivals_high: SlidingExtreme = field(default_factory=_no_arrivals)
    forecast: Forecast = field(default_factory=Forecast)

    def to_checkpoint(self, now_s: float) -> dict[str, list[float]]:
        """Return it as numbers, at most 1 KiB: times in seconds before `now_s`."""
        history, peaks = self.forecast.analogs.history, self.forecast.peaks.peaks
        lowered = (
            []
            if self.flaps.lowered_s is None
            else [(self.flaps.lowered_s, self.flaps.lowered_from)]
        )
        rated = [now_s - float(history.times_s[-1])] if len(history) else []
        rates = history.measured_rps[::-RATE_EVERY][:MOST_RATES].tolist()
        return {
            "decided": [now_s],
            "lowered": _ages(lowered, now_s),
            "flaps": _ages(self.flaps.recent[-MOST_FLAPS:], now_s),
            "needed": _ages(_fewer(self.arrivals_high.entries), now_s),
            "rates": [short(one, DIGITS) for one in (*rated, *rates)],
            "peaks": [
                short(number, 6)
                for peak in [one for one in peaks if one.over][-LONGEST_SERIES:]
                for number in (
                    now_s - peak.began_s,
                    peak.before_rps,
                    peak.peak_rps,
                    peak.burst_rps,
                    float(peak.short),
                )
            ],
        }

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> tuple[float | None, LastHour]:
        """Return the time and the record that `to_checkpoint` saved; None and an empty one without.

        Raise ValueError for numbers that cannot be.
        """
        decided = groups_of(checkpoint, "decided", 1, 1)
        if not decided:
            return None, cls()
        now_s = decided[0][0]
        lowered = _levels(checkpoint, "lowered", now_s, 1)
        needed = _levels(checkpoint, "needed", now_s, MOST_LEVELS)
        if any(one[1] <= two[1] or one[0] > two[0] for one, two in itertools.pairwise(needed)):
            raise ValueError(f"checkpoint needed must hold falling numbers; got {needed}")
        rates = [one[0] for one in groups_of(checkpoint, "rates", 1, 1 + MOST_RATES)]
        history = RateHistory()
        if rates:
            history = RateHistory.restored(now_s - rates[0], rates[:0:-1], RATE_EVERY)
        peaks = tuple(
            Peak(
                began_s=now_s - age_s,
                before_rps=before,
                peak_rps=peak,
                burst_rps=burst,
                over=True,
                short=brief > 0.0,
            )
            for age_s, before, peak, burst, brief in groups_of(
                checkpoint, "peaks", 5, LONGEST_SERIES
            )
        )
        return now_s, cls(
            flaps=Flaps(
                lowered_s=lowered[0][0] if lowered else None,
                lowered_from=lowered[0][1] if lowered else 0,
                recent=_levels(checkpoint, "flaps", now_s, MOST_FLAPS),
            ),
            arrivals_high=SlidingExtreme(keep="largest", entries=needed),
            forecast=Forecast(
                analogs=AnalogForecast(history=history),
                peaks=PeriodicPeaks(peaks=peaks, expected=next_peak(peaks) if peaks else ()),
            ),
        )

    def until(self, now_s: float) -> LastHour:
        """Return the entries that lie neither after this time nor too long before it."""
        analogs, peaks = self.forecast.analogs, self.forecast.peaks
        times_s = analogs.history.times_s
        if len(times_s) and not 0.0 <= now_s - times_s[-1] <= HOUR_S:
            analogs = AnalogForecast()
        if any(one.began_s > now_s for one in peaks.peaks):
            peaks = PeriodicPeaks()
        flaps = self.flaps
        if flaps.lowered_s is not None and flaps.lowered_s > now_s:
            flaps = Flaps()
        return LastHour(
            flaps=Flaps(
                lowered_s=flaps.lowered_s,
                lowered_from=flaps.lowered_from,
                recent=_before(flaps.recent, now_s),
            ),
            arrivals_high=SlidingExtreme(
                keep="largest", entries=_before(self.arrivals_high.entries, now_s)
            ),
            forecast=Forecast(analogs=analogs, peaks=peaks),
        )


def _before(levels: Levels, now_s: float) -> tuple[tuple[float, int], ...]:
    return tuple(one for one in levels if now_s - LONGEST_HOLD_S <= one[0] <= now_s)


def _fewer(entries: Levels) -> Levels:
    """Return at most `MOST_LEVELS`: of neighbours the larger number with the later time.

    So nothing is removed sooner. Worked: 9 needed 50 minutes ago and 8 needed 40 minutes ago
    become 9 needed 40 minutes ago.
    """
    each = -(-len(entries) // MOST_LEVELS)
    groups = [entries[at : at + each] for at in range(0, len(entries), max(1, each))]
    return [(group[-1][0], group[0][1]) for group in groups]


def _ages(levels: Levels, now_s: float) -> list[float]:
    return [
        number
        for time_s, replicas in levels
        for number in (short(max(0.0, now_s - time_s), 6), float(replicas))
    ]


def _levels(
    checkpoint: Checkpoint, key: str, now_s: float, most: int
) -> tuple[tuple[float, int], ...]:
    pairs: Iterable[tuple[float, ...]] = groups_of(checkpoint, key, 2, most)
    found = []
    for age_s, replicas in pairs:
        if not replicas.is_integer() or replicas > EVERY:
            raise ValueError(f"checkpoint {key} must hold whole replicas; got {replicas}")
        found.append((now_s - age_s, int(replicas)))
    return tuple(found)
