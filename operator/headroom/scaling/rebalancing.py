"""Connects the spreading of connections with the decision: what it observes, what is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headroom.scaling.demand.hidden_demand import concurrency_within
from headroom.scaling.frozen import replace
from headroom.scaling.replacement.rebalancer import LONGEST_S, SETTLED_S, Load, Situation
from headroom.scaling.rule_results import RuleResults
from headroom.scaling.serving_model import ServingModel
from headroom.scaling.state import State
from headroom.scaling.values import (
    CostModel,
    Decision,
    Freshness,
    Observation,
    PodState,
    Policy,
)


def step(
    policy: Policy,
    state: State,
    observation: Observation,
    tail: ServingModel | None,
    target_s: float,
    decision: Decision,
) -> tuple[Decision, State]:
    """Begin or continue evictions; return the decision with what is shown of them."""
    if not policy.rebalances:
        return decision, state
    now_s = observation.now_s
    ready = tuple(pod.uid for pod in observation.pods if pod.state is PodState.READY)
    rebalancer = state.rebalancer.watching(frozenset(ready), now_s)
    demand = _demand(policy, state, tail, target_s, decision, ready)
    if demand is not None:
        counts = decision.counts
        usable = (
            decision.signals.freshness is Freshness.FRESH
            and not observation.rolling
            and not observation.unlisted_ready
            and observation.allocation is None
            and not counts.unschedulable + counts.broken
            and decision.replacement is None
        )
        situation = Situation(
            now_s=now_s,
            ready=frozenset(ready),
            current=observation.current,
            usable=usable,
            allowed=1.0 - policy.latency_percentile,
            connections=state.connections.number,
            carried=demand.carried,
            enough=demand.enough,
            may_surge=len(ready) < policy.max_replicas,
        )
        settled_s, load = rebalancer.settled_s(now_s), None
        if usable and settled_s >= SETTLED_S and _over_target(policy, decision):
            load = _load(policy, state, observation, min(settled_s, LONGEST_S), demand.hidden)
        rebalancer = rebalancer.step(situation, load)
    shown = rebalancer.shown
    if rebalancer is not state.rebalancer:
        state = replace(state, rebalancer=rebalancer)
    if shown is None:
        return decision, state
    note = f"one replica {shown.detail}: {shown.action}"
    return (
        replace(
            decision,
            replacement=shown,
            notes=(*decision.notes, note),
            message=f"{decision.message}; {note}",
        ),
        state,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    """What all clients together want."""

    hidden: bool
    """Whether clients wait for their answers: then requests in flight show what they want."""
    carried: float
    """Share of it that one replica answers in time."""
    enough: int
    """Replicas that carry it below the ceiling."""


def _demand(
    policy: Policy,
    state: State,
    tail: ServingModel | None,
    target_s: float,
    decision: Decision,
    ready: tuple[str, ...],
) -> _Demand | None:
    """Return the demand; None while it is unknown or zero.

    Arrivals that equal the answers may be held back by clients that wait. As many replicas as
    answer in time what is in flight suffice in any case (`hidden_demand.py`).
    """
    rate_rps = decision.signals.arrival_rps.value
    if not rate_rps or tail is None or not isinstance(tail.cost, CostModel):
        return None
    rate_rps *= state.contradictions.understated
    replicas = rate_rps / (policy.utilization_ceiling * tail.cost.full_batch_rps)
    carried = tail.capacity_rps(target_s, 1) / rate_rps
    total = state.windows.total(2 * min(policy.burst_windows_s, default=policy.tick_s))
    hidden = total.arrivals <= HIDDEN * (total.ended - total.missed) + math.sqrt(total.arrivals)
    if hidden:
        last = state.windows.last
        in_flight = sum(last[uid].waiting + last[uid].running for uid in ready if uid in last)
        within = concurrency_within(tail.cost, policy.latency_target_s)
        replicas = max(replicas, in_flight / within)
        carried = within / max(1, in_flight)
    return _Demand(hidden=hidden, carried=carried, enough=math.ceil(_NEARLY * replicas))


_NEARLY = 0.95
HIDDEN = 1.1
"""Arrivals up to so many times the answers do not exceed what the replicas serve."""


def with_surge(policy: Policy, state: State, results: RuleResults) -> RuleResults:
    """Return the results with the replicas that an eviction needs to be of use."""
    wanted = min(state.rebalancer.wanted, policy.max_replicas)
    desired = results.desired
    if wanted <= desired.replicas:
        return results
    by_ceiling = max(desired.by_ceiling, wanted)
    return replace(
        results, desired=replace(desired, replicas=wanted, by_ceiling=by_ceiling)
    )


def _over_target(policy: Policy, decision: Decision) -> bool:
    latency_s = decision.signals.latency_s.value
    return latency_s is not None and latency_s > policy.latency_target_s


def _load(
    policy: Policy, state: State, observation: Observation, window_s: float, hidden: bool
) -> Load | None:
    windows, columns = state.windows, state.windows.series.columns
    known = [
        pod for pod in observation.pods if pod.state is PodState.READY and pod.uid in columns
    ]
    if not known or not windows.bounds_s:
        return None
    replicas = tuple(pod.uid for pod in known)
    ended, late = windows.outcomes_by_replica(replicas, window_s, policy.latency_target_s)
    ready_s = np.array([pod.created_s if pod.ready_s is None else pod.ready_s for pod in known])
    arrived = windows.arrivals_by_replica(replicas, window_s)
    weights = arrived
    if hidden:
        last = windows.last
        weights = np.array([float(last[uid].waiting + last[uid].running) for uid in replicas])
    return Load(
        replicas=replicas,
        settled=observation.now_s - ready_s >= SETTLED_S,
        arrived=arrived,
        ended=ended,
        late=late,
        weights=weights,
    )
