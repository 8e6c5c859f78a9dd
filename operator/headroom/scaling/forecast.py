"""The forecast: how much will arrive once a replica that is asked for now could serve.

Learnt from this service's own last hour, anew after each restart. Where there is no precedent it is
the present rate. So a load that comes back to where it was is not chased: neither upwards, for a
peak that is over before a replica has started, nor downwards, for a dip.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.scaling.bursts import Burst, Bursts
from headroom.scaling.law import Element
from headroom.scaling.precedents import WINDOW_S, Precedents
from headroom.scaling.values import Policy

USUAL_START_S = 60.0
"""Taken for the cold start until one was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Requests per second; what is not expected to differ is the present rate."""

    later: float
    """When a replica asked for now has served for a window: what to add for."""
    most: float
    """The most from now until a minute after a replica removed now could be back."""
    burst: float | None
    """What is left of a burst then; None where nothing stands out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is remembered for it."""

    precedents: Precedents = field(default_factory=Precedents)
    bursts: Bursts = field(default_factory=Bursts)

    def seen(
        self, policy: Policy, now_s: float, rate_rps: float, burst_rps: float | None, start_s: float
    ) -> Forecast:
        """Return the forecast with this tick's fresh rates taken in."""
        precedents, bursts = self.precedents.seen(now_s, rate_rps, start_s), self.bursts
        if burst_rps is not None and burst_rps > rate_rps > 0:
            burst = Burst(time_s=now_s, rate_rps=rate_rps, burst_rps=burst_rps)
            bursts = bursts.noted(burst, min(policy.burst_windows_s, default=policy.tick_s))
        if precedents is self.precedents and bursts is self.bursts:
            return self
        return Forecast(precedents=precedents, bursts=bursts)

    def expected(
        self, policy: Policy, now_s: float, rate_rps: float, burst_rps: float | None, start_s: float
    ) -> Expected:
        """Return what to expect of these rates."""
        law, past = policy.law, self.precedents
        if not law.has(Element.FORECAST) or rate_rps <= 0 or past.later is None:
            return Expected(later=rate_rps, most=rate_rps, burst=burst_rps)
        weights = past.weights(rate_rps, policy.stable_window_s)
        later = past.later.quantile(weights, law.expected_share)
        most = past.most.quantile(weights, law.expected_share) if past.most is not None else 1.0
        if burst_rps is not None and burst_rps > rate_rps:
            burst = Burst(time_s=now_s, rate_rps=rate_rps, burst_rps=burst_rps)
            left = self.bursts.lasting(burst, past, start_s + WINDOW_S, law.expected_share)
            burst_rps = rate_rps + left * (burst_rps - rate_rps)
        return Expected(later=later * rate_rps, most=max(1.0, most) * rate_rps, burst=burst_rps)
