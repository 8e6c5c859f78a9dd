"""Records the arrival rate every 10 s for an hour, as measured and as a stable rate without noise.

The stable rate is the mean over the longest window that no shorter one contradicts (Lepski 1991;
the intersection of confidence intervals of Goldenshluger and Nemirovski 1997). While the load is
constant, noise does not change it; when the load changes, it is the rate of the shortest window.
Worked: at 100/s a window of 30 s is known to 1.8/s, one of 8 minutes to 0.46/s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.frozen import replace
from headroom.scaling.values.tuning import HOUR_S

Vector = NDArray[np.float32]
"""Single precision: 13 kB for an hour of a service, including the future ratios."""

STEP_S = 10.0
WINDOW_S = 30.0
"""Window of the measured rate: after this time it contains nothing of an earlier load."""
LONGEST_WINDOW_S = 480.0
"""Longest window of the stable rate; windows double from `WINDOW_S`."""
MOST_S = 1800.0
"""Longest window where requests take so long that windows begin longer."""
DEVIATIONS = 2.0
"""Deviations of a Poisson count, in both directions: how far two windows may differ by chance."""
LONGEST_GAP_S = 300.0
"""After a longer gap the history restarts, because the rate in the gap is unknown. A shorter one,
for example the restart of the operator, is bridged by a straight line: it is a twelfth of the hour.
"""


def no_rates() -> Vector:
    """Return an empty row."""
    return np.empty(0, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class StableRate:
    """A rate and its error."""

    rate_rps: float
    error_rps: float
    """`DEVIATIONS` of the requests of its window."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RateHistory:
    """Rates of the last hour, oldest first."""

    times_s: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    measured_rps: Vector = field(default_factory=no_rates)
    stable_rps: Vector = field(default_factory=no_rates)
    window_s: float = WINDOW_S
    """Window of the measured rates."""
    gap_s: tuple[float, float] = (-math.inf, -math.inf)
    """The last instant before the last gap, and the first after it: what bridges it is no evidence.
    """

    def __len__(self) -> int:
        """Number of instants."""
        return len(self.times_s)

    def add(self, now_s: float, rate_rps: float, window_s: float = WINDOW_S) -> RateHistory:
        """Return the history with the rate of a window, if the last is a step old; else itself."""
        kept = self
        if len(self):
            if now_s - self.times_s[-1] < STEP_S:
                return self
            gap_s = now_s - float(self.times_s[-1])
            kept = self._bridged(now_s, rate_rps) if gap_s <= LONGEST_GAP_S else RateHistory()
        kept = replace(kept, window_s=window_s)
        stable = kept.stable_rate(now_s, rate_rps)
        first = int(kept.times_s.searchsorted(now_s - HOUR_S))
        return RateHistory(
            times_s=np.append(kept.times_s[first:], now_s),
            measured_rps=np.append(kept.measured_rps[first:], np.float32(rate_rps)),
            stable_rps=np.append(kept.stable_rps[first:], np.float32(stable.rate_rps)),
            window_s=window_s,
            gap_s=kept.gap_s,
        )

    def _bridged(self, now_s: float, rate_rps: float) -> RateHistory:
        """Return the history with the steps between its last one and this rate."""
        last_s, last_rps = float(self.times_s[-1]), float(self.measured_rps[-1])
        missing = max(0, round((now_s - last_s) / STEP_S) - 1)
        if not missing:
            return self
        shares = np.arange(1, missing + 1) / (missing + 1)
        rates = (last_rps + shares * (rate_rps - last_rps)).astype(np.float32)
        return RateHistory(
            times_s=np.append(
                self.times_s, (last_s + shares * (now_s - last_s)).astype(np.float64)
            ),
            measured_rps=np.append(self.measured_rps, rates),
            stable_rps=np.append(self.stable_rps, rates),
            window_s=self.window_s,
            gap_s=(last_s, now_s) if now_s - last_s > self.window_s else self.gap_s,
        )

    @classmethod
    def restored(cls, end_s: float, rates_rps: Sequence[float], every: int) -> RateHistory:
        """Return the history that ends then, of every `every`-th measured rate, oldest first."""
        if not rates_rps:
            return cls()
        steps = np.arange(every * (len(rates_rps) - 1) + 1.0)
        measured = np.interp(steps, every * np.arange(len(rates_rps)), rates_rps)
        return cls(
            times_s=end_s - STEP_S * steps[::-1],
            measured_rps=measured.astype(np.float32),
            stable_rps=_stable_rates(measured),
        )

    def stable_rate(self, now_s: float, rate_rps: float) -> StableRate:
        """Return the stable rate now that `rate_rps` is measured."""
        error_rps = error_of(rate_rps, self.window_s)
        best = rate_rps, error_rps
        if not len(self) or now_s - self.times_s[-1] > self.window_s:
            return StableRate(rate_rps=rate_rps, error_rps=error_rps)
        low_rps, high_rps = rate_rps - error_rps, rate_rps + error_rps
        window_s, longest_s = 2 * self.window_s, LONGEST_WINDOW_S * self.window_s / WINDOW_S
        while window_s <= min(longest_s, max(LONGEST_WINDOW_S, MOST_S)):
            oldest_s = now_s - window_s + self.window_s
            if max(self.times_s[0], self.gap_s[1]) > oldest_s + STEP_S:
                break
            rates = self.measured_rps[self.times_s.searchsorted(oldest_s - 1) :]
            mean_rps = (float(rates.sum()) + rate_rps) / (len(rates) + 1)
            error_rps = error_of(mean_rps, window_s)
            low_rps, high_rps = (
                max(low_rps, mean_rps - error_rps),
                min(high_rps, mean_rps + error_rps),
            )
            if low_rps > high_rps:
                break
            best = mean_rps, error_rps
            window_s *= 2
        return StableRate(rate_rps=best[0], error_rps=best[1])

    def mean_rps(self, window_s: float) -> float:
        """Return the mean of the measured rates of the last `window_s`; 0 without any."""
        if not len(self):
            return 0.0
        first = int(self.times_s.searchsorted(self.times_s[-1] - window_s, side="right"))
        return float(self.measured_rps[first:].mean())

    def rate_after(self, time_s: float, after_s: float) -> float | None:
        """Return the rate measured this long after; None unless both instants were observed."""
        index = int(self.times_s.searchsorted(time_s + after_s))
        if index == len(self) or time_s < self.times_s[0] - STEP_S:
            return None
        if self.gap_s[0] < self.times_s[index] < self.gap_s[1]:
            return None
        return float(self.measured_rps[index])


def _stable_rates(measured: NDArray[np.float64]) -> Vector:
    """Return the stable rate of each instant from the measured ones, as `stable_rate` does."""
    errors = DEVIATIONS * np.sqrt(measured / WINDOW_S)
    low, high, best = measured - errors, measured + errors, measured.copy()
    agrees = np.ones(len(measured), dtype=bool)
    sums = np.append(0.0, measured.cumsum())
    window_s = 2 * WINDOW_S
    while window_s <= LONGEST_WINDOW_S:
        number = round((window_s - WINDOW_S) / STEP_S) + 1
        if number > len(measured):
            break
        means = np.full(len(measured), np.nan)
        means[number - 1 :] = (sums[number:] - sums[:-number]) / number
        errors = DEVIATIONS * np.sqrt(means / window_s)
        low, high = np.fmax(low, means - errors), np.fmin(high, means + errors)
        agrees &= (low <= high) & np.isfinite(means)
        best[agrees] = means[agrees]
        window_s *= 2
    return best.astype(np.float32)


def error_of(rate_rps: float, window_s: float) -> float:
    """Return `DEVIATIONS` of the requests of a window, per second."""
    return DEVIATIONS * math.sqrt(rate_rps / window_s)


def least_of(rate_rps: float, window_s: float) -> float:
    """Return the rate less a deviation of the requests of its window, not below 0.

    A hold looks at three windows or more, and of six one is a deviation too high by chance. Worked:
    8 requests in 30 s show 0.17/s instead of 0.27/s, 3000 show 98/s instead of 100/s.
    """
    return max(0.0, rate_rps - math.sqrt(rate_rps / window_s))
