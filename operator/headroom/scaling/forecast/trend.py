"""Extrapolates a significant rise of the arrival rate over the cold start.

Counts of consecutive windows are fitted with an exponential and with a line, over 150, 300 and 600
s. Of the spans that no shorter one contradicts (Lepski 1991) the most significant counts. A rise is
significant if it lies more than `DEVIATIONS` standard errors above zero: by the counts'
Poisson noise, by their scatter around the fit, and by how much the growth of earlier spans varied.
Worked: 16/s that double in 10 minutes grow by 0.00116 of themselves per second; the error of 20
windows of 480 requests is 0.00006, of five 0.0005.

A load that jumps is not rising: one step must explain the counts worse than the rise does. What
bridges a gap in the metrics explains nothing and is left out, since the load may have jumped in it.
The growth is shrunk by what noise alone would show (James and Stein 1961), so that it begins at
zero where it becomes significant, and it is extended no further ahead than it has been observed.

Replicas that generate start slowly, and their first rise comes once. While nothing is known of how
much growth varies, the scatter around the fit decides for them alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headroom.scaling.forecast.rate_history import RateHistory
from headroom.scaling.forecast.step_fit import Counts, misfit_of_a_step
from headroom.scaling.mathematics.arrays import median
from headroom.scaling.mathematics.flags import Flags

SPANS = (5, 10, 20)
"""Windows of a fit."""
DEVIATIONS = 3.0
AGREEING = 2.0
"""Standard errors within which the growth over two spans agrees."""
LARGEST = 3.0
"""Largest rate expected, over the present one."""
EARLIER = 2
"""Spans before the present one, from which on they show how much growth varies."""
MEDIAN = 0.6745
"""Median of the absolute values of a standard normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A rise that continues."""

    time_s: float
    """The middle of the latest window."""
    rate_rps: float
    """The fitted rate then."""
    growth_per_s: float
    """Share of the rate by which it grows per second; > 0."""
    exponential: bool
    """Whether the growth stays this share of the rate; else the increase stays the same."""
    seen_s: float
    """For how long it has been observed."""
    first: bool = False
    """Whether it counts before two such spans have shown how much growth varies."""

    def expected_rps(self, time_s: float) -> float:
        """Return the rate at this time if the rise continues."""
        growth = self.growth_per_s * min(max(0.0, time_s - self.time_s), self.seen_s)
        factor = math.exp(growth) if self.exponential else 1 + growth
        return self.rate_rps * min(factor, LARGEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """A span fitted with one of the two curves."""

    growth_per_s: float
    rate_rps: float
    error_per_s: float
    misfit: float
    """Pearson's chi-square."""
    exponential: bool


def rising(history: RateHistory, *, generates: bool = False) -> Trend | None:
    """Return the rise at the end of the history; None if there is no significant one.

    `generates`: by the rules for replicas that generate.
    """
    counts, seen = _window_counts(history)
    if len(counts) < SPANS[0] or not counts[-SPANS[0] :].all():
        return None
    window_s = history.window_s
    ages_s = window_s * np.arange(1.0 - len(counts), 1.0)
    low, high, score = -math.inf, math.inf, DEVIATIONS
    fit, windows, usual_per_s = None, 0, 0.0 if generates else math.inf
    for span in SPANS:
        if span > len(counts) or not counts[-span:].all():
            break
        usual_per_s = _usual_error_per_s(counts, span, usual_per_s / 2, window_s)
        known = seen[-span:]
        number = np.count_nonzero(known)
        if number < SPANS[0]:
            continue
        longer = _fit(ages_s[-span:][known], counts[-span:][known], window_s)
        scatter = math.sqrt(max(1.0, longer.misfit / (number - 2)))
        error_per_s = max(scatter * longer.error_per_s, usual_per_s)
        growth_per_s, error = longer.growth_per_s, AGREEING * error_per_s
        low, high = max(low, growth_per_s - error), min(high, growth_per_s + error)
        if low > high:
            break
        if growth_per_s > score * error_per_s:
            fit, windows, score = longer, span, growth_per_s / error_per_s
    if fit is None or misfit_of_a_step(counts[-windows:][seen[-windows:]]) <= fit.misfit:
        return None
    return Trend(
        time_s=float(history.times_s[-1]) - window_s / 2,
        rate_rps=fit.rate_rps,
        growth_per_s=fit.growth_per_s * (1 - (DEVIATIONS / score) ** 2),
        exponential=fit.exponential,
        seen_s=windows * window_s,
        first=generates and len(counts) < (1 + EARLIER) * windows,
    )


def _window_counts(history: RateHistory) -> tuple[Counts, Flags]:
    """Return the requests of the windows that end now and follow one another, oldest first.

    And which of them were seen: a line bridges the last gap, whatever the load did in it.
    """
    times_s = history.times_s
    if not len(times_s):
        return np.empty(0), np.empty(0, dtype=bool)
    window_s = history.window_s
    windows = int((times_s[-1] - times_s[0]) / window_s) + 1
    ends_s = times_s[-1] - window_s * np.arange(windows - 1, -1, -1)
    counts: Counts = np.interp(ends_s, times_s, history.measured_rps) * window_s
    gap_begun_s, gap_ended_s = history.gap_s
    return counts, (ends_s <= gap_begun_s) | (ends_s >= gap_ended_s)


def _usual_error_per_s(counts: Counts, span: int, otherwise: float, window_s: float) -> float:
    """Return the standard error of the growth over a span, as the last hour shows it.

    Consecutive spans of a steady rise grow alike: their difference is the error of both. The median
    ignores a single jump; the present span does not count, because a rise may have begun in it.
    `otherwise` counts with less than two spans before it: half the error over half the span.
    """
    counts = counts[:-span]
    if len(counts) < EARLIER * span:
        return otherwise
    centred = window_s * (np.arange(span) - (span - 1) / 2)
    kernel = centred / np.dot(centred, centred)
    growth = np.convolve(np.log(np.maximum(counts, 0.5)), kernel[::-1], mode="valid")
    differences = np.abs(growth[span:] - growth[:-span])
    return median(differences) / (MEDIAN * math.sqrt(2.0))


def _fit(ages_s: Counts, counts: Counts, window_s: float) -> _Fit:
    """Return the better of the two curves."""
    fits = [_exponential(ages_s, counts, window_s), _linear(ages_s, counts, window_s)]
    return min(fits, key=lambda fit: fit.misfit)


def _exponential(ages_s: Counts, counts: Counts, window_s: float) -> _Fit:
    """Fit log counts, each with the weight of its count: Var(log n) = 1 / n."""
    middle_s = float(np.average(ages_s, weights=counts))
    centred, logarithms = ages_s - middle_s, np.log(counts)
    spread = float(np.dot(counts, centred * centred))
    growth = float(np.dot(counts * centred, logarithms)) / spread
    level = float(np.average(logarithms, weights=counts))
    fitted = np.exp(level + growth * centred)
    return _Fit(
        growth_per_s=growth,
        rate_rps=float(fitted[-1]) / window_s,
        error_per_s=1 / math.sqrt(spread),
        misfit=float((((counts - fitted) ** 2) / fitted).sum()),
        exponential=True,
    )


def _linear(ages_s: Counts, counts: Counts, window_s: float) -> _Fit:
    centred, mean = ages_s - ages_s.mean(), float(counts.mean())
    spread = float(np.dot(centred, centred))
    slope = float(np.dot(centred, counts)) / spread
    fitted = mean + slope * centred
    last = float(fitted[-1])
    if fitted.min() <= 0:
        return _Fit(
            growth_per_s=0.0, rate_rps=0.0, error_per_s=1.0, misfit=math.inf, exponential=False
        )
    return _Fit(
        growth_per_s=slope / last,
        rate_rps=last / window_s,
        error_per_s=math.sqrt(mean / spread) / last,
        misfit=float((((counts - fitted) ** 2) / fitted).sum()),
        exponential=False,
    )
