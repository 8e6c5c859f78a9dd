"""Estimates the demand behind the counted arrivals: exact, hidden, or less without retries."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headroom.scaling.demand.away import away_for
from headroom.scaling.demand.hidden_demand import (
    LEVEL_S,
    concurrency_within,
    is_hidden,
    replicas_for_in_flight,
    works_off,
)
from headroom.scaling.demand.old_queues import without_old_queues
from headroom.scaling.demand.open_stream import UNSEEN_S
from headroom.scaling.demand.throughput import FULL, Throughput, measure_throughput, works_near_full
from headroom.scaling.evidence.demand_estimate import DemandEstimate
from headroom.scaling.evidence.first_rate import with_first_rate
from headroom.scaling.evidence.obstacles import with_obstacles
from headroom.scaling.evidence.retries import without_further_tries
from headroom.scaling.frozen import replace
from headroom.scaling.generation.fleet.generating_fleet import GeneratingCost
from headroom.scaling.serving_model import ReplicaCost
from headroom.scaling.state.state import State
from headroom.scaling.values.decision import Recommendation, ReplicaCounts
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.demand import Demand, DemandKnown
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Policy, Routing
from headroom.scaling.values.signals import Signals
from headroom.scaling.values.tuning import Component
from headroom.scaling.windows.together import APART_S, moves_apart

USUALLY_STALE_S = 10.0
"""`Policy.stale_after_s` where pages are read each tick; gauges read less often look level."""


def estimate_demand(
    policy: Policy,
    state: State,
    signals: Signals,
    cost: ReplicaCost | None,
    counts: ReplicaCounts,
    ready: Sequence[str],
    now_s: float,
    *,
    rolling: bool = False,
) -> tuple[State, DemandEstimate]:
    """Return the demand behind the counted arrivals, and the state with this tick's evidence."""
    rate_rps = signals.arrival_rps.value
    bound = 0.0 if cost is None else float(cost.slots * cost.max_batch * counts.ready)
    exact = DemandEstimate(demand=Demand(rate_rps=rate_rps), signals=signals, queue_bound=bound)
    if cost is None or not counts.ready:
        return state, exact
    if rate_rps is None:
        return state, with_first_rate(policy, state, exact, now_s)
    if not signals.arrival_rps.fresh:
        return state, exact
    load = _measured(policy, state, signals, cost, counts.ready, now_s)
    if load is None:
        return state, exact
    if policy.tuning.has(Component.OBSTACLES):
        state = with_obstacles(policy, state, signals, load, cost, ready, now_s)
    if policy.tuning.has(Component.RETRIES):
        state, exact = without_further_tries(policy, state, exact, load, rate_rps, counts, now_s)
    if exact.at_most_rps is not None or not policy.tuning.has(Component.HIDDEN_DEMAND):
        return state, exact
    stream, generates = state.open_stream, isinstance(cost, GeneratingCost)
    whole = load
    if not generates:
        in_time = _concurrency(policy, cost) * load.ready
        stream = stream.observe(now_s, load, policy.tick_s, in_time)
        if policy.routing.sees_load:
            load = without_old_queues(policy, state.windows, load, cost, ready, now_s)
    level_s = _level_s(policy, unseen=stream.unseen)
    history = state.in_flight.add(now_s, load.in_flight, policy.tick_s, level_s)
    settled_s = now_s - state.ready_since_s
    away = 0
    if rolling:
        away = away_for(state.changes, whole.ready, now_s, state.cold_starts.late_s)
    carried = state.carried.observe(whole, rate_rps, settled_s / policy.pace, away)
    state = replace(state, in_flight=history, open_stream=stream, carried=carried)
    if stream.explains(load) or works_off(whole) or not is_hidden(load, history, now_s, level_s):
        return state, exact
    concurrency = _concurrency(policy, cost)
    may_stand = works_near_full(policy) or not generates
    if may_stand and not load.busy and load.in_flight <= concurrency * load.ready:
        return state, exact  # a queue stands as it may, and is answered in time
    enough = None if generates else carried.enough(whole, away)
    if enough is not None:
        return state, _while_away(exact, whole, enough, away)
    return state, _hidden(policy, exact, load, concurrency, rate_rps)


def _measured(
    policy: Policy, state: State, signals: Signals, cost: ReplicaCost, ready: int, now_s: float
) -> Throughput | None:
    """Return the throughput; None if arrivals, answers and in flight are of different times."""
    load = measure_throughput(policy, state.windows, signals, cost, ready, now_s)
    age_s = signals.in_flight.age_s
    if load is None or (
        age_s and age_s > APART_S and moves_apart(state.windows, load.window_s, age_s, now_s)
    ):
        return None
    return _judged_by_sequences(load, cost) if isinstance(cost, GeneratingCost) else load


def _level_s(policy: Policy, *, unseen: bool) -> float:
    """Return for how long requests in flight must be level to show that clients wait."""
    level_s = policy.pace * LEVEL_S
    if unseen:
        level_s = max(UNSEEN_S, level_s)
    return level_s + 2.0 * max(0.0, policy.stale_after_s - USUALLY_STALE_S)


def _while_away(exact: DemandEstimate, load: Throughput, enough: int, away: int) -> DemandEstimate:
    """Return the estimate where replicas are saturated because others are away."""
    detail = f"{load.in_flight} requests in flight at {load.ready} ready, {away} away"
    recommendation = Recommendation(rule=Reason.QUEUE_DEPTH, replicas=enough, detail=detail)
    return replace(exact, recommendation=recommendation)


def _judged_by_sequences(load: Throughput, cost: GeneratingCost) -> Throughput:
    """Return the load of replicas that are saturated if their sequences are as many as they may be.

    Answers end too unevenly: of 40 expected in a window, 46 are no sign of a full replica.
    """
    full = load.in_flight >= FULL * cost.concurrency * load.ready
    return replace(load, busy=full, full_rps=math.nan)


def _concurrency(policy: Policy, cost: ReplicaCost) -> float:
    """Return how many requests one replica answers in time if this many are always there."""
    if isinstance(cost, GeneratingCost):
        return cost.concurrency
    if isinstance(cost, CostModel):
        return concurrency_within(cost, policy.latency_target_s)
    return 1.0


def _hidden(
    policy: Policy, exact: DemandEstimate, load: Throughput, concurrency: float, rate_rps: float
) -> DemandEstimate:
    replicas = "replica" if load.ready == 1 else "replicas"
    detail = f"{load.in_flight} requests in flight at {load.ready} saturated {replicas}"
    demand = Demand(
        known=DemandKnown.AT_LEAST,
        rate_rps=rate_rps,
        at_most_rps=max(rate_rps, load.in_flight / policy.latency_target_s),
        detail=detail,
    )
    recommendation = Recommendation(
        rule=Reason.HIDDEN_DEMAND,
        replicas=replicas_for_in_flight(
            load, concurrency, queue_in_front=policy.routing is Routing.CENTRAL
        ),
        detail=f"at least {rate_rps:.3g}/s, {detail}; "
        f"{concurrency:.3g} per replica are answered in time",
    )
    return replace(exact, demand=demand, recommendation=recommendation)
