"""The forecast: how much will arrive once a replica that is asked for now could serve.

Learnt from this service's own last hour, anew after each restart. Where there is no precedent it is
the present rate. So a load that comes back to where it was is not chased: neither upwards, for a
peak that is over before a replica has started, nor downwards, for a dip. A surge that comes at
regular times is expected before it comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.scaling.forecast.analog_forecast import Precedents
from headroom.scaling.forecast.bursts import Burst, Bursts
from headroom.scaling.forecast.periodic_peaks import Surges
from headroom.scaling.forecast.rate_history import WINDOW_S, Vector
from headroom.scaling.limits.flaps import SLACK_S
from headroom.scaling.tuning import Element, Law
from headroom.scaling.values import Policy

USUAL_START_S = 60.0
"""Taken for the cold start until one was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """One expectation, requests per second."""

    steady: float
    """By the steady rate and its error: what the ceiling asks for, since utilization is a mean."""
    felt: float
    """By the rate of the stable window too: what latency asks for, which chance raises as well."""
    due: bool = False
    """Whether a surge that comes at regular times is what asks for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is not expected to differ is the present rate."""

    later: Rates
    """When a replica asked for now has served for a window: what to add for."""
    most: Rates
    """The most from now until a minute after a replica removed now could be back."""
    burst_rps: float | None
    """What is left of a burst then; None where nothing stands out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is remembered for it."""

    precedents: Precedents = field(default_factory=Precedents)
    bursts: Bursts = field(default_factory=Bursts)
    surges: Surges = field(default_factory=Surges)

    def seen(
        self, policy: Policy, now_s: float, rate_rps: float, burst_rps: float | None, start_s: float
    ) -> Forecast:
        """Return the forecast with this tick's fresh rates taken in."""
        precedents, bursts = self.precedents.seen(now_s, rate_rps, start_s), self.bursts
        stands_out = burst_rps is not None and burst_rps > rate_rps > 0
        if burst_rps is not None and stands_out:
            burst = Burst(time_s=now_s, rate_rps=rate_rps, burst_rps=burst_rps)
            bursts = bursts.noted(burst, min(policy.burst_windows_s, default=policy.tick_s))
        surges = self.surges.noted(now_s, rate_rps, stands_out, policy.stable_window_s)
        if (precedents, bursts, surges) == (self.precedents, self.bursts, self.surges):
            return self
        return Forecast(precedents=precedents, bursts=bursts, surges=surges)

    def expected(
        self, policy: Policy, now_s: float, rate_rps: float, burst_rps: float | None, start_s: float
    ) -> Expected:
        """Return what to expect of these rates."""
        law, past = policy.law, self.precedents
        if not law.has(Element.FORECAST):
            now = Rates(steady=rate_rps, felt=rate_rps)
            return Expected(later=now, most=now, burst_rps=burst_rps)
        due_later_rps = due_most_rps = 0.0
        if law.has(Element.SURGES):
            due_later_rps = self.surges.expected_rps(now_s, start_s)
            due_most_rps = self.surges.expected_rps(now_s, start_s + SLACK_S)
        if rate_rps <= 0 or past.later is None:
            return Expected(
                later=_rates(rate_rps, rate_rps, due_later_rps),
                most=_rates(rate_rps, rate_rps, due_most_rps),
                burst_rps=burst_rps,
            )
        steady = past.course.steady(now_s, rate_rps)
        certain_rps = steady.rate_rps + steady.error_rps
        later, most = self._ratios(law, past.weights(steady.rate_rps, policy.stable_window_s))
        if burst_rps is not None and burst_rps > rate_rps:
            burst = Burst(time_s=now_s, rate_rps=rate_rps, burst_rps=burst_rps)
            left = self.bursts.lasting(burst, past.course, start_s + WINDOW_S, law.expected_share)
            burst_rps = rate_rps + left * (burst_rps - rate_rps)
        return Expected(
            later=_rates(later * certain_rps, later * rate_rps, due_later_rps),
            most=_rates(most * certain_rps, most * rate_rps, due_most_rps),
            burst_rps=burst_rps,
        )

    def _ratios(self, law: Law, weights: Vector) -> tuple[float, float]:
        """Return what followed over what was: later, and at most."""
        past = self.precedents
        later = past.later.quantile(weights, law.expected_share) if past.later else 1.0
        most = past.most.quantile(weights, law.kept_share) if past.most else 1.0
        return later, max(1.0, most)


def _rates(steady_rps: float, felt_rps: float, due_rps: float) -> Rates:
    due = due_rps > max(steady_rps, felt_rps)
    steady_rps = max(steady_rps, due_rps)
    return Rates(steady=steady_rps, felt=max(steady_rps, felt_rps), due=due)
