"""Forecasts the arrivals for the time when a replica requested now could serve.

Learned from the last hour of this service, again after each restart. Without analogs it is the
present rate, or what a significant rise leads to. A load that returns to its former level is not
followed: neither upwards, for a peak that ends before a replica has started, nor downwards, for a
dip. A periodic peak is expected before it comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.scaling.forecast.analog_forecast import AnalogForecast, rate_after, ratio_of
from headroom.scaling.forecast.bursts import Burst, Bursts
from headroom.scaling.forecast.periodic_peaks import PeriodicPeaks
from headroom.scaling.forecast.rate_history import WINDOW_S, StableRate, Vector, least_of
from headroom.scaling.forecast.trend import Trend, rising
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.tuning import SLACK_S, Component, Tuning

_DOUBLE = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """One expectation, in requests per second."""

    for_ceiling_rps: float
    """The stable rate and its error: for the ceiling, because utilization is a mean."""
    for_latency_rps: float
    """The higher of that and what the stable window surely shows: for latency, which half a minute
    of more requests raises as well."""
    occasion: str = ""
    """Source of the rates, for people, if it is neither the present rate nor an analog."""

    def times(self, factor: float) -> Rates:
        """Return the expectation if this many times the counted requests arrive."""
        if factor == 1.0:
            return self
        return Rates(
            for_ceiling_rps=factor * self.for_ceiling_rps,
            for_latency_rps=factor * self.for_latency_rps,
            occasion=self.occasion,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The expected rates. Rates that are not expected to change equal the present rate."""

    later: Rates
    """Rates to add replicas for: those when a replica requested now has served for a window, or,
    for a first rise, when it is ready."""
    most: Rates
    """The highest from now until a minute after a replica removed now could be back."""
    burst_rps: float | None
    """Rest of a burst then; None without a burst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The history that the forecast is learned from."""

    analogs: AnalogForecast = field(default_factory=AnalogForecast)
    bursts: Bursts = field(default_factory=Bursts)
    peaks: PeriodicPeaks = field(default_factory=PeriodicPeaks)
    trend: Trend | None = None
    """None unless the rate rises."""

    def observe(
        self, policy: Policy, now_s: float, rate_rps: float, burst_rps: float | None, start_s: float
    ) -> Forecast:
        """Return the forecast with this tick's fresh rates added."""
        window_s, bursts = policy.stable_window_s, self.bursts
        analogs = self.analogs.observe(now_s, rate_rps, start_s, window_s)
        if burst_rps is not None and not burst_rps > rate_rps > 0:
            burst_rps = None
        if burst_rps is not None:
            burst = Burst(time_s=now_s, rate_rps=rate_rps, burst_rps=burst_rps)
            bursts = bursts.observe(burst, policy.shortest_window_s)
        peaks = self.peaks.observe(now_s, rate_rps, burst_rps, window_s)
        if (analogs, bursts, peaks) == (self.analogs, self.bursts, self.peaks):
            return self
        trend = self.trend
        if analogs is not self.analogs:
            follows = policy.tuning.has(Component.TREND)
            trend = rising(analogs.history, generates=_generates(policy)) if follows else None
        return Forecast(analogs=analogs, bursts=bursts, peaks=peaks, trend=trend)

    def expected(
        self, policy: Policy, now_s: float, rate_rps: float, burst_rps: float | None, start_s: float
    ) -> Expected:
        """Return the expected rates after these rates."""
        tuning, past = policy.tuning, self.analogs
        if not tuning.has(Component.FORECAST):
            now = _plain(rate_rps)
            return Expected(later=now, most=now, burst_rps=burst_rps)
        later, most = _plain(rate_rps), _plain(rate_rps)
        if past.later is not None or (self.trend is not None and _generates(policy)):
            stable = past.history.stable_rate(now_s, rate_rps)
            rising_s = self.trend.seen_s if self.trend is not None else 0.0
            weights = past.weights(stable.rate_rps, policy.stable_window_s, rising_s)
            sure_rps = rate_rps  # a significant rise is no chance
            if self.trend is None:
                sure_rps = least_of(rate_rps, policy.stable_window_s)
            then_s = now_s + start_s + self._served_s
            later = self._later(tuning, then_s, sure_rps, stable, weights)
            most = self._most(tuning, now_s + start_s + SLACK_S, sure_rps, stable, weights)
            burst_rps = self._rest_of_burst(tuning, now_s, rate_rps, burst_rps, start_s)
        if tuning.has(Component.PERIODIC_PEAKS):
            later = _at_least(later, self.peaks.expected_rps(now_s, start_s))
            most = _at_least(most, self.peaks.expected_rps(now_s, start_s + SLACK_S))
        return Expected(later=later, most=most, burst_rps=burst_rps)

    def _later(
        self, tuning: Tuning, then_s: float, sure_rps: float, stable: StableRate, weights: Vector
    ) -> Rates:
        past, rise = self.analogs.later, self._rise(then_s, stable)
        ratio = past.quantile(weights, tuning.expected_share, rise) if past else rise
        return self._rates(tuning, ratio, rise, sure_rps, stable)

    def _most(
        self, tuning: Tuning, then_s: float, sure_rps: float, stable: StableRate, weights: Vector
    ) -> Rates:
        past, rise = self.analogs.most, self._rise(then_s, stable)
        ratio = past.quantile(weights, tuning.kept_share, rise) if past else rise
        return self._rates(tuning, max(1.0, ratio), rise, sure_rps, stable)

    @property
    def _served_s(self) -> float:
        """Time for which a replica has served when it must suffice for a rise.

        A first rise may be a few steps: each tick that still sees it can add a replica for more.
        """
        return 0.0 if self.trend is not None and self.trend.first else WINDOW_S

    def _rise(self, then_s: float, stable: StableRate) -> float:
        """Return the rate then over the present one if no past instant was like the present."""
        if self.trend is None:
            return 1.0
        return max(1.0, ratio_of(self.trend.expected_rps(then_s), stable.rate_rps))

    def _rates(
        self, tuning: Tuning, ratio: float, rise: float, sure_rps: float, stable: StableRate
    ) -> Rates:
        certain_rps = stable.rate_rps + stable.error_rps
        most_rps = tuning.record_ratio * self.analogs.highest_rps
        return Rates(
            for_ceiling_rps=_after(ratio, rise, certain_rps, most_rps),
            for_latency_rps=_after(ratio, rise, max(certain_rps, sure_rps), most_rps),
            occasion=f" as the rise of the last {self.trend.seen_s:g} s goes on"
            if self.trend and ratio == rise > 1
            else "",
        )

    def _rest_of_burst(
        self,
        tuning: Tuning,
        now_s: float,
        rate_rps: float,
        burst_rps: float | None,
        start_s: float,
    ) -> float | None:
        if burst_rps is None or not burst_rps > rate_rps > 0:
            return burst_rps
        burst = Burst(time_s=now_s, rate_rps=rate_rps, burst_rps=burst_rps)
        left = self.bursts.remaining_share(
            burst, self.analogs.history, start_s + WINDOW_S, tuning.expected_share
        )
        return rate_rps + left * (burst_rps - rate_rps)


def _after(ratio: float, rise: float, rate_rps: float, most_rps: float) -> float:
    """Return the rate times the ratio: more than twice as much only up to `most_rps`.

    While a load returns, its window is nearly empty. Its true rate is then known badly, and a
    ratio of 40 of twice that rate would be a load that never was.
    """
    usual_rps = rate_after(min(ratio, max(rise, _DOUBLE)), rate_rps)
    return max(usual_rps, min(rate_after(ratio, rate_rps), most_rps))


def _generates(policy: Policy) -> bool:
    """Return whether the service has promises on tokens: its first rise cannot wait for analogs."""
    return policy.token_targets is not None


def _plain(rate_rps: float) -> Rates:
    return Rates(for_ceiling_rps=rate_rps, for_latency_rps=rate_rps)


def _at_least(rates: Rates, peak_rps: float) -> Rates:
    """Return the rates, or those of a periodic peak where it is higher."""
    if peak_rps <= rates.for_ceiling_rps:
        return rates
    occasion = rates.occasion if peak_rps <= rates.for_latency_rps else " at a periodic peak"
    return Rates(
        for_ceiling_rps=peak_rps,
        for_latency_rps=max(rates.for_latency_rps, peak_rps),
        occasion=occasion,
    )
