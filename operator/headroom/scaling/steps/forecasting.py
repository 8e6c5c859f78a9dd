"""Forecasts the arrivals of a tick, and learns from fresh rates."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.scaling.forecast import bursts
from headroom.scaling.forecast.forecast import Expected
from headroom.scaling.frozen import replace
from headroom.scaling.state.state import State
from headroom.scaling.values.observation import Pod
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals


def forecast_arrivals(
    policy: Policy,
    risked: Policy,
    state: State,
    signals: Signals,
    now_s: float,
    at_most_rps: float | None = None,
    ready: Sequence[Pod] = (),
) -> tuple[State, Expected | None, Expected | None]:
    """Return the arrivals expected by `risked` and by `policy`, which has no risk level, and learn.

    None while no rate is known; None too for those of `policy` where both are the same. A burst
    counts up to `at_most_rps`: the rest are retries.
    """
    rate = signals.arrival_rps
    if rate.value is None:
        return state, None, None
    if rate.fresh:
        burst_rps = bursts.burst_rate_rps(policy, state.windows, now_s, rate.age_s or 0.0)
    else:
        burst_rps = bursts.burst_rate_rps(policy, state.windows, now_s, ready=ready)
    if burst_rps is not None and at_most_rps is not None:
        burst_rps = min(burst_rps, at_most_rps)
    start_s = state.cold_starts.assumed_s
    if rate.fresh:
        forecast = state.forecast.observe(policy, now_s, rate.value, burst_rps, start_s)
        state = replace(state, forecast=forecast)
    expected = state.forecast.expected(risked, now_s, rate.value, burst_rps, start_s)
    if risked is policy:
        return state, expected, None
    usual = state.forecast.expected(policy, now_s, rate.value, burst_rps, start_s)
    return state, expected, usual
