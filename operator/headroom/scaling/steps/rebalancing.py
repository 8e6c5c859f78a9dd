"""Connects the rebalancing of connections with the decision: its inputs and its shown result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroom.scaling.demand.hidden_demand import concurrency_within
from headroom.scaling.frozen import replace
from headroom.scaling.replacement.rebalancer import LONGEST_S, SETTLED_S, Situation
from headroom.scaling.replacement.spread import Load
from headroom.scaling.rules.rate_rules import MOST_REPLICAS
from headroom.scaling.rules.rule_results import RuleResults
from headroom.scaling.serving_model import ServingModel
from headroom.scaling.state.state import State
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.observation import CostModel, Observation, Pod
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Freshness, Signals
from headroom.scaling.windows.by_replica import arrivals_of, outcomes_of

ENOUGH = 0.95
"""Share of what carries the arrivals: a number that is exceeded by less is not rounded up."""
HIDDEN = 1.1
"""Arrivals up to this many times the answers do not exceed what the replicas serve."""


def is_disturbed(policy: Policy, state: State, now_s: float) -> bool:
    """Return whether measured latency contains requests that uneven connections made late."""
    return now_s - state.rebalancer.uneven_s <= policy.stable_window_s


def with_surge(policy: Policy, state: State, results: RuleResults) -> RuleResults:
    """Return the results with the replicas that must be ready before an eviction helps."""
    wanted = min(state.rebalancer.wanted, policy.max_replicas)
    desired = results.desired
    if wanted <= desired.replicas:
        return results
    by_ceiling = max(desired.by_ceiling, wanted)
    return replace(results, desired=replace(desired, replicas=wanted, by_ceiling=by_ceiling))


def step(
    policy: Policy,
    state: State,
    observation: Observation,
    tail: ServingModel | None,
    target_s: float,
    decision: Decision,
) -> tuple[Decision, State]:
    """Begin or continue evictions; return the decision that shows them, and the state."""
    if not policy.rebalances:
        return decision, state
    now_s = observation.now_s
    ready = observation.ready
    rebalancer = state.rebalancer.watching(frozenset(observation.ready_uids), now_s)
    late = (decision.signals.latency_s.value or 0.0) > policy.latency_target_s
    demand = None
    if late or rebalancer.victims or rebalancer.wanted:
        demand = _demand(policy, state, tail, target_s, decision.signals, ready)
    if demand is not None:
        situation = Situation(
            now_s=now_s,
            current=observation.current,
            usable=_usable(state, observation, decision),
            may_surge=len(ready) < policy.max_replicas,
            allowed=1.0 - policy.latency_percentile,
            connections=state.connections.number,
            carried=demand.carried,
            enough=demand.enough,
            start_s=state.cold_starts.at_least_s,
        )
        settled_s, load = now_s - rebalancer.since_s, None
        if late and settled_s >= SETTLED_S:
            load = _load(policy, state, ready, now_s, min(settled_s, LONGEST_S), demand.hidden)
        rebalancer = rebalancer.step(situation, load)
    if rebalancer is not state.rebalancer:
        state = replace(state, rebalancer=rebalancer)
    shown = rebalancer.shown
    return (decision if shown is None else decision.showing(shown)), state


def _usable(state: State, observation: Observation, decision: Decision) -> bool:
    """Return whether all replicas are measured, and nothing else moves or lacks them."""
    return (
        decision.signals.freshness is Freshness.FRESH
        and decision.replacement is None
        and not decision.left_out
        and not state.contradictions.at(observation.now_s)
        and not observation.rolling
        and not observation.unlisted_ready
        and observation.allocation is None
        and not decision.counts.unschedulable + decision.counts.broken
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    """Demand of all clients together."""

    hidden: bool
    """Whether clients wait for their answers: then requests in flight show what they want."""
    carried: float
    """Share of the demand that one replica answers in time."""
    enough: int
    """Replicas that carry even demand below the ceiling and within the target."""


def _demand(
    policy: Policy,
    state: State,
    tail: ServingModel | None,
    target_s: float,
    signals: Signals,
    ready: Sequence[Pod],
) -> _Demand | None:
    """Return the demand; None while it is unknown or zero.

    Arrivals that equal the answers may be held back by clients that wait. As many replicas as
    answer in time what is in flight suffice in any case (`demand/hidden_demand.py`).
    """
    rate_rps = signals.arrival_rps.value
    if not rate_rps or tail is None or not isinstance(tail.cost, CostModel):
        return None
    rate_rps *= state.contradictions.understated
    replicas = rate_rps / (policy.utilization_ceiling * tail.cost.full_batch_rps)
    carried = tail.capacity_rps(target_s, 1) / rate_rps
    total = state.windows.total(2 * policy.shortest_window_s)
    answered = total.ended - total.missed
    hidden = total.arrivals <= HIDDEN * answered + math.sqrt(total.arrivals)
    if hidden:
        in_flight = sum(_in_flight(state, ready))
        within = concurrency_within(tail.cost, policy.latency_target_s)
        carried = within / max(1.0, in_flight)
    replicas = max(replicas, 1.0 / carried) if carried > 0.0 else math.inf
    enough = math.ceil(ENOUGH * replicas) if replicas < MOST_REPLICAS else MOST_REPLICAS
    return _Demand(hidden=hidden, carried=carried, enough=enough)


def _in_flight(state: State, ready: Sequence[Pod]) -> list[float]:
    """Return the requests in flight at each replica."""
    last = [state.windows.last.get(pod.uid) for pod in ready]
    return [0.0 if one is None else float(one.waiting + one.running) for one in last]


def _load(
    policy: Policy, state: State, ready: Sequence[Pod], now_s: float, window_s: float, hidden: bool
) -> Load | None:
    """Return the work of the ready replicas; None if one of them is not measured."""
    windows, replicas = state.windows, tuple(pod.uid for pod in ready)
    if not windows.bounds_s or any(uid not in windows.series.columns for uid in replicas):
        return None
    ended, late = outcomes_of(windows, replicas, window_s, policy.latency_target_s)
    arrived = arrivals_of(windows, replicas, window_s)
    ready_s = np.array([pod.created_s if pod.ready_s is None else pod.ready_s for pod in ready])
    return Load(
        replicas=replicas,
        settled=now_s - ready_s >= SETTLED_S,
        arrived=arrived,
        ended=ended,
        late=late,
        weights=np.array(_in_flight(state, ready)) if hidden else arrived,
    )
