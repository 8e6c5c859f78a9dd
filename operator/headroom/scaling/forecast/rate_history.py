"""The course of the arrival rate: every 10 s of the last hour, measured and steady.

The steady rate is the mean over the longest window that no shorter one contradicts (Lepski 1991;
the intersection of confidence intervals of Goldenshluger and Nemirovski 1997): while the load
stands, chance does not move it, and when the load moves, it is the rate of the shortest window.
Worked: at 100/s a window of 30 s is known to 1.8/s, one of 8 minutes to 0.46/s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.tuning import HOUR_S

Vector = NDArray[np.float32]
"""Single precision: 13 kB for an hour of a service, with what followed each instant."""

STEP_S = 10.0
WINDOW_S = 30.0
"""The measured rate is that of a window so long: this much later it shows nothing of before."""
LONGEST_WINDOW_S = 480.0
"""Of the steady rate; doubled from `WINDOW_S`."""
DEVIATIONS = 2.0
"""Of a Poisson count, to either side: how far two windows may differ by chance."""
LONGEST_GAP_S = 30.0
"""After a longer one the course begins anew: nobody knows what was in it."""


def no_rates() -> Vector:
    """Return an empty row."""
    return np.empty(0, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class StableRate:
    """A rate, and how far it may be off."""

    rate_rps: float
    error_rps: float
    """`DEVIATIONS` of the requests of its window."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RateHistory:
    """Rates of the last hour, oldest first."""

    times_s: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    measured_rps: Vector = field(default_factory=no_rates)
    stable_rps: Vector = field(default_factory=no_rates)

    def __len__(self) -> int:
        """How many instants."""
        return len(self.times_s)

    def add(self, now_s: float, rate_rps: float) -> RateHistory:
        """Return the course with this rate, if the last one is a step ago; else itself."""
        kept = self
        if len(self):
            if now_s - self.times_s[-1] < STEP_S:
                return self
            if now_s - self.times_s[-1] > LONGEST_GAP_S:
                kept = RateHistory()
        stable = kept.stable_rate(now_s, rate_rps)
        first = int(kept.times_s.searchsorted(now_s - HOUR_S))
        return RateHistory(
            times_s=np.append(kept.times_s[first:], now_s),
            measured_rps=np.append(kept.measured_rps[first:], np.float32(rate_rps)),
            stable_rps=np.append(kept.stable_rps[first:], np.float32(stable.rate_rps)),
        )

    def stable_rate(self, now_s: float, rate_rps: float) -> StableRate:
        """Return the steady rate now that `rate_rps` is measured."""
        error_rps = _error_rps(rate_rps, WINDOW_S)
        best = StableRate(rate_rps=rate_rps, error_rps=error_rps)
        if not len(self) or now_s - self.times_s[-1] > LONGEST_GAP_S:
            return best
        low_rps, high_rps = rate_rps - error_rps, rate_rps + error_rps
        window_s = 2 * WINDOW_S
        while window_s <= LONGEST_WINDOW_S:
            oldest_s = now_s - window_s + WINDOW_S
            if self.times_s[0] > oldest_s + STEP_S:
                break
            rates = self.measured_rps[self.times_s.searchsorted(oldest_s - 1) :]
            mean_rps = (float(rates.sum()) + rate_rps) / (len(rates) + 1)
            error_rps = _error_rps(mean_rps, window_s)
            low_rps, high_rps = (
                max(low_rps, mean_rps - error_rps),
                min(high_rps, mean_rps + error_rps),
            )
            if low_rps > high_rps:
                break
            best = StableRate(rate_rps=mean_rps, error_rps=error_rps)
            window_s *= 2
        return best

    def rate_after(self, time_s: float, after_s: float) -> float | None:
        """Return what was measured so long after; None where either instant was not watched."""
        index = int(self.times_s.searchsorted(time_s + after_s))
        if index == len(self) or time_s < self.times_s[0] - STEP_S:
            return None
        return float(self.measured_rps[index])


def _error_rps(rate_rps: float, window_s: float) -> float:
    return DEVIATIONS * math.sqrt(rate_rps / window_s)
