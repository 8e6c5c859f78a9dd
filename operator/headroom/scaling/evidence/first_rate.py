"""Tells a burst from chance in the first seconds of a process, by the last rate before it. Pure.

A rate over some seconds is noise, so rates are missing until a longest burst window was watched.
But the checkpoint has the rate of before, and what exceeds it beyond chance is a burst, which an
operator that lives answers within its shortest window. The rate of before is compared with and
never used: it stands for the seconds of a window that were not watched, which only delays a burst.
"""

from __future__ import annotations

from headroom.scaling.demand.retries import MANY
from headroom.scaling.evidence.demand_estimate import DemandEstimate
from headroom.scaling.forecast.bursts import beyond_chance
from headroom.scaling.forecast.rate_history import LONGEST_GAP_S
from headroom.scaling.frozen import replace
from headroom.scaling.state.state import State
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Freshness, Signal


def with_first_rate(
    policy: Policy, state: State, unknown: DemandEstimate, now_s: float
) -> DemandEstimate:
    """Return the estimate with the rate of a burst; itself without one, or while many miss.

    While many requests miss, more than the rate of before may be retries. The rate is stale:
    nothing is removed by it or learned from it, and what is reported stays unknown.
    """
    waiting, before_rps = unknown.signals.waiting, _rate_before(state, now_s)
    if not waiting.fresh or before_rps is None:
        return unknown
    watched_s = state.windows.watched_s(now_s, policy.known_after_s)
    if watched_s <= 0.0:
        return unknown
    flow = state.windows.flow(watched_s)
    if flow.missed > MANY * flow.ended:
        return unknown
    rate_rps = _burst_rps(policy, state, before_rps, watched_s)
    if rate_rps is None:
        return unknown
    rate = Signal(freshness=Freshness.STALE, value=rate_rps, age_s=waiting.age_s)
    return replace(unknown, signals=replace(unknown.signals, arrival_rps=rate))


def _rate_before(state: State, now_s: float) -> float | None:
    """Return the last rate of the hour; None unless it is so recent that the hour goes on."""
    history = state.forecast.analogs.history
    if not len(history) or not 0.0 <= now_s - history.times_s[-1] <= LONGEST_GAP_S:
        return None
    return float(history.measured_rps[-1])


def _burst_rps(policy: Policy, state: State, before_rps: float, watched_s: float) -> float | None:
    """Return the highest rate of a short window that is a burst; None if none is.

    Worked: 20/s before; in the first 2 s 160 arrive. With 40 for the 2 s before, 200 in 4 s are
    50/s against 20/s, z = 13. Two seconds later 320 in 4 s are 80/s.
    """
    rates = []
    for window_s in policy.burst_windows_s:
        seen_s = min(window_s, watched_s)
        (arrived,) = state.windows.arrivals([seen_s])
        arrived += before_rps * (window_s - seen_s)
        if beyond_chance(policy, arrived, before_rps * window_s):
            rates.append(arrived / window_s)
    return max(rates, default=None)
