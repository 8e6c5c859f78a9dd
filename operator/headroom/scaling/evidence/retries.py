"""Subtracts retries from the counted arrivals while many requests miss.

A client that marked all its requests as retries would leave nothing of the demand. So at most as
many are subtracted as requests missed before: each retry follows a miss.
"""

from __future__ import annotations

from headroom.scaling.demand.throughput import Throughput
from headroom.scaling.evidence.demand_estimate import DemandEstimate
from headroom.scaling.frozen import replace
from headroom.scaling.state.state import State
from headroom.scaling.values.decision import ReplicaCounts
from headroom.scaling.values.demand import Demand, DemandKnown
from headroom.scaling.values.policy import Policy


def without_further_tries(
    policy: Policy,
    state: State,
    exact: DemandEstimate,
    load: Throughput,
    rate_rps: float,
    counts: ReplicaCounts,
    now_s: float,
) -> tuple[State, DemandEstimate]:
    """Bound the rate by that of first tries while many requests miss."""
    watched_s = state.windows.watched_s(now_s, policy.stable_window_s)
    total = state.windows.total(watched_s)
    named = 0.0
    if total.retried > 0 and total.arrivals > 0:
        before = state.windows.total(watched_s, ago_s=PAUSE_S)
        tries = min(total.retried, max(total.missed, before.missed))
        named = min(1.0, tries / total.arrivals)
    if named > 0.0:
        return state, _without_retries(exact, rate_rps, named)
    shortest_s = policy.shortest_window_s
    (arrived,) = state.windows.arrivals([shortest_s])
    retries = state.retries.observe(
        now_s,
        max(rate_rps, arrived / shortest_s),
        total.missed / total.ended if total.ended > 0 else None,
        answered_rps=load.answered / load.window_s,
        cold_start_s=max(load.window_s, state.cold_starts.at_least_s),
        warming=counts.warming > 0,
    )
    state = replace(state, retries=retries)
    most_rps = retries.at_most_rps
    if most_rps is None or most_rps >= rate_rps:
        return state, replace(exact, at_most_rps=most_rps)
    detail = f"{rate_rps:.3g}/s counted with retries, about {most_rps:.3g}/s first tries"
    demand = Demand(known=DemandKnown.INCLUDES_RETRIES, rate_rps=most_rps, detail=detail)
    bounded = replace(exact.signals.arrival_rps, value=most_rps)
    signals = replace(exact.signals, arrival_rps=bounded)
    return state, replace(exact, demand=demand, signals=signals, at_most_rps=most_rps)


def _without_retries(exact: DemandEstimate, rate_rps: float, named: float) -> DemandEstimate:
    """Subtract the requests that are marked as retries."""
    first_rps = (1.0 - named) * rate_rps
    signals = replace(
        exact.signals, arrival_rps=replace(exact.signals.arrival_rps, value=first_rps)
    )
    demand = Demand(rate_rps=first_rps)
    if named >= NAMED_RETRIES:
        detail = f"{rate_rps:.3g}/s counted, {100 * named:.2g}% of them retries"
        demand = Demand(known=DemandKnown.INCLUDES_RETRIES, rate_rps=first_rps, detail=detail)
    return replace(exact, demand=demand, signals=signals, at_most_rps=first_rps)


PAUSE_S = 10.0
"""Between a miss and the next try: OpenAI's clients wait for up to 8 s. Not a longer window: more
would be subtracted than misses, and a client that lies could keep replicas from being added."""
NAMED_RETRIES = 0.05
"""A smaller share of retries is not mentioned."""
