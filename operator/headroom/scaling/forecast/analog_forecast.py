"""Forecasts from analogs: past instants of the last hour with a similar rate and trend.

An instant counts as an analog as far as its rate and slope resemble the present ones: a Gaussian
weight in the distance of their logarithms (kernel estimate of a conditional distribution, Nadaraya
1964 and Watson 1964). While the rate rises significantly, it must also have grown as much for as
long: within half a cold start, chance hides whether a slow wave rises or falls, and the hour before
a rise may have seen it fall only. The rate that followed an analog, over its own rate, is one
possible future. A constant rate, or a significant rise that goes on, is one more, with the weight
of a minute at the same rate: with little history it counts; if the rate has been here for minutes
before, what followed decides. So a load that always returns to its level is not extrapolated.

Rates are compared as rate + `QUIET_RPS`: a busy rate is followed by a multiple of itself, a quiet
one, which has no multiples, by a rate as such. Worked: at 20/s a ratio of 1.5 means 30/s; at 0/s
one of 151 means 20/s, because 150 x 0.133/s = 20/s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.forecast.rate_history import (
    STEP_S,
    WINDOW_S,
    RateHistory,
    Vector,
    error_of,
    no_rates,
)
from headroom.scaling.frozen import cached_property
from headroom.scaling.values.tuning import SLACK_S

WIDTH, DEVIATIONS = 0.1, 4.0
"""Width of the kernel: 10 %, or this many Poisson deviations of the requests in a window."""
STAYING = 6.0
"""Weight of the future without analogs, in steps."""
QUIET_RPS = DEVIATIONS / WINDOW_S
"""Some requests in a window: a rate below this counts as none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FutureRatios:
    """For each past instant the rate that followed over its own rate, both plus `QUIET_RPS`."""

    ratios: Vector
    """[instants], ascending."""
    order: NDArray[np.int16]
    """[instants]: the instant of each ratio."""

    @classmethod
    def of(cls, after_rps: Vector, before_rps: Vector) -> FutureRatios:
        """Return the ratios of rates [instants] to the rates before them [at least instants]."""
        before = before_rps[: len(after_rps)] + QUIET_RPS
        ratios: Vector = ((after_rps + QUIET_RPS) / before).astype(np.float32)
        order = np.argsort(ratios, kind="stable").astype(np.int16)
        return cls(ratios=ratios[order], order=order)

    def quantile(self, weights: Vector, share: float, usual: float = 1.0) -> float:
        """Return the ratio that `share` of the weight does not exceed.

        `weights` [at least instants] are those of the instants, oldest first; `usual` is the ratio
        without any, with the weight `STAYING`.
        """
        mass = np.zeros(len(self.order) + 1, dtype=weights.dtype)
        weights.take(self.order).cumsum(out=mass[1:])
        due = share * (float(mass[-1]) + STAYING)
        below = float(mass[self.ratios.searchsorted(usual)])
        if below < due <= below + STAYING:
            return usual
        if due > below:
            due -= STAYING
        return float(self.ratios[min(len(self.ratios), int(mass.searchsorted(due))) - 1])


@dataclass(frozen=True, kw_only=True, eq=False)
class AnalogForecast:
    """The stable rate over an hour, and the ratios of later rates to those of its instants."""

    history: RateHistory = field(default_factory=RateHistory)
    logarithms: Vector = field(default_factory=no_rates)
    slopes: Vector = field(default_factory=no_rates)
    """[instants]: rise of the logarithm over half a cold start, at least 30 s; 0 if unknown."""
    later: FutureRatios | None = None
    """The rate a cold start and a window later; None before any instant is that old."""
    most: FutureRatios | None = None
    """The largest rate from then until a cold start and a minute later."""

    def observe(
        self, now_s: float, rate_rps: float, cold_start_s: float, window_s: float = WINDOW_S
    ) -> AnalogForecast:
        """Return the forecast with this rate of a window added, if the last one is a step old."""
        history = self.history.add(now_s, rate_rps, window_s)
        if history is self.history:
            return self
        rates_rps = history.stable_rps
        logarithms = np.log(rates_rps + np.float32(QUIET_RPS))
        later, most = _steps(cold_start_s + WINDOW_S), _steps(cold_start_s + SLACK_S)
        return AnalogForecast(
            history=history,
            logarithms=logarithms,
            slopes=_slopes(logarithms, _steps(max(WINDOW_S, cold_start_s / 2))),
            later=FutureRatios.of(rates_rps[later:], rates_rps) if len(rates_rps) > later else None,
            most=FutureRatios.of(_largest(rates_rps, most), rates_rps)
            if len(rates_rps) > most
            else None,
        )

    def weights(self, rate_rps: float, window_s: float, rising_s: float = 0.0) -> Vector:
        """Return the similarity of each instant to the present, 0..1, [instants].

        While the rate has risen significantly for `rising_s`, the growth over that time counts too.
        """
        error_rps = math.sqrt(max(rate_rps, 1.0 / window_s) / window_s)
        width = max(WIDTH, DEVIATIONS * error_rps / (rate_rps + QUIET_RPS))
        rates = self.logarithms - math.log(rate_rps + QUIET_RPS)
        slopes = self.slopes - self.slopes[-1]
        squares = rates * rates + slopes * slopes
        if rising_s > 0.0:
            grown = _slopes(self.logarithms, _steps(rising_s))
            squares += (grown - grown[-1]) ** 2
        similarity: Vector = np.exp(squares * (-0.5 / (width * width)))
        return similarity

    @cached_property
    def highest_rps(self) -> float:
        """The highest stable rate of the hour, and as much more as still counts as alike."""
        highest_rps = float(self.history.stable_rps.max(initial=0.0))
        return highest_rps + max(WIDTH * highest_rps, error_of(highest_rps, self.history.window_s))


def ratio_of(after_rps: float, before_rps: float) -> float:
    """Return the ratio of two rates as `FutureRatios` counts it."""
    return (after_rps + QUIET_RPS) / (before_rps + QUIET_RPS)


def rate_after(ratio: float, rate_rps: float) -> float:
    """Return the rate that this ratio makes of another; never below 0."""
    return max(0.0, ratio * (rate_rps + QUIET_RPS) - QUIET_RPS)


def _steps(seconds: float) -> int:
    return max(1, round(seconds / STEP_S))


def _slopes(logarithms: Vector, steps: int) -> Vector:
    slopes = np.zeros_like(logarithms)
    slopes[steps:] = logarithms[steps:] - logarithms[:-steps]
    return slopes


def _largest(rates_rps: Vector, steps: int) -> Vector:
    """Return the largest of each instant and the `steps` after it, where all are known."""
    spans = np.lib.stride_tricks.sliding_window_view(rates_rps, steps + 1)
    largest: Vector = spans.max(axis=1)
    return largest
