"""Forecasts the arrivals for the time when a replica requested now could serve.

Learned from the last hour of this service, again after each restart. Without analogs it is the
present rate. A load that returns to its former level is not followed: neither upwards, for a peak
that ends before a replica has started, nor downwards, for a dip. A periodic peak is expected before
it comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.scaling.forecast.analog_forecast import AnalogForecast
from headroom.scaling.forecast.bursts import Burst, Bursts
from headroom.scaling.forecast.periodic_peaks import PeriodicPeaks
from headroom.scaling.forecast.rate_history import WINDOW_S, Vector
from headroom.scaling.tuning import SLACK_S, Component, Tuning
from headroom.scaling.values import Policy

USUAL_START_S = 60.0
"""Assumed cold start until one was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """One expectation, in requests per second."""

    for_ceiling_rps: float
    """The stable rate and its error: for the ceiling, because utilization is a mean."""
    for_latency_rps: float
    """The higher of that and the rate of the stable window: for latency, which noise raises as
    well."""
    periodic: bool = False
    """Whether a periodic peak determines the rates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The expected rates. Rates that are not expected to change equal the present rate."""

    later: Rates
    """When a replica requested now has served for a window: what to add replicas for."""
    most: Rates
    """The highest from now until a minute after a replica removed now could be back."""
    burst_rps: float | None
    """What remains of a burst then; None without a burst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The history that the forecast is learned from."""

    analogs: AnalogForecast = field(default_factory=AnalogForecast)
    bursts: Bursts = field(default_factory=Bursts)
    peaks: PeriodicPeaks = field(default_factory=PeriodicPeaks)

    def observe(
        self, policy: Policy, now_s: float, rate_rps: float, burst_rps: float | None, start_s: float
    ) -> Forecast:
        """Return the forecast with this tick's fresh rates added."""
        analogs, bursts = self.analogs.observe(now_s, rate_rps, start_s), self.bursts
        stands_out = burst_rps is not None and burst_rps > rate_rps > 0
        if burst_rps is not None and stands_out:
            burst = Burst(time_s=now_s, rate_rps=rate_rps, burst_rps=burst_rps)
            bursts = bursts.observe(burst, min(policy.burst_windows_s, default=policy.tick_s))
        peaks = self.peaks.observe(now_s, rate_rps, stands_out, policy.stable_window_s)
        if (analogs, bursts, peaks) == (self.analogs, self.bursts, self.peaks):
            return self
        return Forecast(analogs=analogs, bursts=bursts, peaks=peaks)

    def expected(
        self, policy: Policy, now_s: float, rate_rps: float, burst_rps: float | None, start_s: float
    ) -> Expected:
        """Return what to expect after these rates."""
        tuning, past = policy.tuning, self.analogs
        if not tuning.has(Component.FORECAST):
            now = Rates(for_ceiling_rps=rate_rps, for_latency_rps=rate_rps)
            return Expected(later=now, most=now, burst_rps=burst_rps)
        peak_later_rps = peak_most_rps = 0.0
        if tuning.has(Component.PERIODIC_PEAKS):
            peak_later_rps = self.peaks.expected_rps(now_s, start_s)
            peak_most_rps = self.peaks.expected_rps(now_s, start_s + SLACK_S)
        if rate_rps <= 0 or past.later is None:
            return Expected(
                later=_rates(rate_rps, rate_rps, peak_later_rps),
                most=_rates(rate_rps, rate_rps, peak_most_rps),
                burst_rps=burst_rps,
            )
        stable = past.history.stable_rate(now_s, rate_rps)
        certain_rps = stable.rate_rps + stable.error_rps
        later, most = self._ratios(tuning, past.weights(stable.rate_rps, policy.stable_window_s))
        if burst_rps is not None and burst_rps > rate_rps:
            burst = Burst(time_s=now_s, rate_rps=rate_rps, burst_rps=burst_rps)
            left = self.bursts.remaining_share(
                burst, past.history, start_s + WINDOW_S, tuning.expected_share
            )
            burst_rps = rate_rps + left * (burst_rps - rate_rps)
        return Expected(
            later=_rates(later * certain_rps, later * rate_rps, peak_later_rps),
            most=_rates(most * certain_rps, most * rate_rps, peak_most_rps),
            burst_rps=burst_rps,
        )

    def _ratios(self, tuning: Tuning, weights: Vector) -> tuple[float, float]:
        """Return the expected rate over the present one: later, and at most."""
        past = self.analogs
        later = past.later.quantile(weights, tuning.expected_share) if past.later else 1.0
        most = past.most.quantile(weights, tuning.kept_share) if past.most else 1.0
        return later, max(1.0, most)


def _rates(stable_rps: float, windowed_rps: float, peak_rps: float) -> Rates:
    periodic = peak_rps > max(stable_rps, windowed_rps)
    stable_rps = max(stable_rps, peak_rps)
    return Rates(
        for_ceiling_rps=stable_rps, for_latency_rps=max(stable_rps, windowed_rps), periodic=periodic
    )
