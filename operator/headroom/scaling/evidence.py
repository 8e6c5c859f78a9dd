"""Takes in evidence that needs no model: hidden demand, retries and missed targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroom.scaling.demand.hidden_demand import (
    LEVEL_S,
    concurrency_within,
    is_hidden,
    replicas_for_in_flight,
)
from headroom.scaling.demand.throughput import (
    FULL,
    Throughput,
    measure_throughput,
    works_near_full,
)
from headroom.scaling.demand.unused_replicas import unused
from headroom.scaling.frozen import replace
from headroom.scaling.generation.fleet import GeneratingCost
from headroom.scaling.promise.error_budget import Outcomes, one_alone_is_late
from headroom.scaling.rule_results import RuleResults
from headroom.scaling.serving_model import ReplicaCost
from headroom.scaling.state import State
from headroom.scaling.tuning import Component
from headroom.scaling.values.decision import (
    Demand,
    DemandKnown,
    Reason,
    Recommendation,
    ReplicaCounts,
)
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Policy, Routing
from headroom.scaling.values.signals import Signals
from headroom.scaling.windows.counter_series import Vector

STEADY_S = 60.0
"""After replicas have sufficed for so long, a surge's backlog has been worked off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandEstimate:
    """What a tick knows about demand, and what it recommends."""

    demand: Demand
    signals: Signals
    """With the arrival rate that rules may use."""
    at_most_rps: float | None = None
    """Bound on every rate while retries inflate the count."""
    recommendation: Recommendation | None = None
    queue_bound: float = 0.0
    """Waiting requests that are normal at the ready replicas."""


def estimate_demand(
    policy: Policy,
    state: State,
    signals: Signals,
    cost: ReplicaCost | None,
    counts: ReplicaCounts,
    ready: Sequence[str],
    now_s: float,
) -> tuple[State, DemandEstimate]:
    """Return the demand behind the counted arrivals, and the state with this tick's evidence."""
    rate_rps = signals.arrival_rps.value
    bound = 0.0 if cost is None else float(cost.slots * cost.max_batch * counts.ready)
    exact = DemandEstimate(demand=Demand(rate_rps=rate_rps), signals=signals, queue_bound=bound)
    if cost is None or rate_rps is None or not signals.arrival_rps.fresh or not counts.ready:
        return state, exact
    load = measure_throughput(policy, state.windows, signals, cost, counts.ready, now_s)
    if load is None:
        return state, exact
    if isinstance(cost, GeneratingCost):
        load = _judged_by_sequences(load, cost)
    if policy.tuning.has(Component.OBSTACLES):
        state = _with_obstacles(policy, state, signals, load, cost, ready, now_s)
    if policy.tuning.has(Component.RETRIES):
        state, exact = _bounded(policy, state, exact, load, rate_rps, counts, now_s)
    if exact.at_most_rps is not None or not policy.tuning.has(Component.HIDDEN_DEMAND):
        return state, exact
    level_s = policy.pace * LEVEL_S
    history = state.in_flight.add(now_s, load.in_flight, policy.tick_s, level_s)
    state = replace(state, in_flight=history)
    if not is_hidden(load, history, now_s, level_s):
        return state, exact
    concurrency = _concurrency(policy, cost)
    if works_near_full(policy) and not load.busy and load.in_flight <= concurrency * load.ready:
        return state, exact  # a queue stands as it may, and is answered in time
    return state, _hidden(policy, exact, load, concurrency, rate_rps)


def _judged_by_sequences(load: Throughput, cost: GeneratingCost) -> Throughput:
    """Return the load of replicas that are saturated if their sequences are as many as they may be.

    Answers end too unevenly: of 40 expected in a window, 46 are no sign of a full replica.
    """
    full = load.in_flight >= FULL * cost.concurrency * load.ready
    return replace(load, busy=full, full_rps=math.nan)


def _with_obstacles(
    policy: Policy,
    state: State,
    signals: Signals,
    load: Throughput,
    cost: ReplicaCost,
    ready: Sequence[str],
    now_s: float,
) -> State:
    over = signals.latency_s.value is not None and (
        signals.latency_s.value > policy.latency_target_s
    )
    settled_s = (now_s - state.ready_since_s) / policy.pace
    arrived_s = max(load.window_s, min(policy.pace * settled_s, policy.stable_window_s))
    arrived = busy = _NONE
    if over:
        arrived = state.windows.arrivals_by_replica(ready, arrived_s)
        _, busy = _taken(state, ready, arrived_s)
    if isinstance(cost, GeneratingCost):
        # Answers take long: those of added replicas end only after a mean answer (Little), and
        # replicas that are evened out get no request until they have as few in flight as the new.
        settled_s -= load.in_flight / max(load.arrival_rps, 1.0 / load.window_s)
        if policy.routing.sees_load:
            arrived = busy = np.full(load.ready, load.arrived / load.ready)
    obstacles = state.obstacles.observe(
        now_s, load, arrived, busy, arrived_s=arrived_s, settled_s=settled_s, over_target=over
    )
    if isinstance(cost, GeneratingCost) and over and settled_s >= UNUSED_S:
        taken, busy = _taken(state, ready, UNUSED_S)
        obstacles = obstacles.with_unused(now_s, unused(taken, busy), len(taken))
    return state if obstacles is state.obstacles else replace(state, obstacles=obstacles)


UNUSED_S = 60.0
"""For so long a replica must have got hardly anything to count as unused."""


def _taken(state: State, ready: Sequence[str], window_s: float) -> tuple[Vector, Vector]:
    """Return what arrived at each replica or is in flight there, and what each had to do.

    One with a queue is in use, and so was one that has answered a queue of before the window.
    """
    last = state.windows.last
    known = [uid for uid in ready if uid in last]
    inside = np.array([float(last[uid].waiting + last[uid].running) for uid in known])
    arrived = state.windows.arrivals_by_replica(known, window_s)
    ended = state.windows.answered(window_s)
    done = np.maximum(arrived, [ended.get(uid, 0.0) for uid in known])
    return arrived + inside, done + inside


_NONE: Vector = np.zeros(0)


def _concurrency(policy: Policy, cost: ReplicaCost) -> float:
    """Return how many requests one replica answers in time if so many are always there."""
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


def _bounded(
    policy: Policy,
    state: State,
    exact: DemandEstimate,
    load: Throughput,
    rate_rps: float,
    counts: ReplicaCounts,
    now_s: float,
) -> tuple[State, DemandEstimate]:
    """Bound the rate by that of first tries while many requests miss."""
    total = state.windows.total(state.windows.watched_s(now_s, policy.stable_window_s))
    named = min(1.0, total.retried / total.arrivals) if total.arrivals > 0 else 0.0
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
    detail = f"{rate_rps:.3g}/s counted with further tries, about {most_rps:.3g}/s first tries"
    demand = Demand(known=DemandKnown.INCLUDES_RETRIES, rate_rps=most_rps, detail=detail)
    bounded = replace(exact.signals.arrival_rps, value=most_rps)
    signals = replace(exact.signals, arrival_rps=bounded)
    return state, replace(exact, demand=demand, signals=signals, at_most_rps=most_rps)


def _without_retries(exact: DemandEstimate, rate_rps: float, named: float) -> DemandEstimate:
    """Subtract the further tries that say so."""
    first_rps = (1.0 - named) * rate_rps
    signals = replace(
        exact.signals, arrival_rps=replace(exact.signals.arrival_rps, value=first_rps)
    )
    demand = Demand(rate_rps=first_rps)
    if named >= NAMED_RETRIES:
        detail = f"{rate_rps:.3g}/s counted, {100 * named:.2g}% of them further tries"
        demand = Demand(known=DemandKnown.INCLUDES_RETRIES, rate_rps=first_rps, detail=detail)
    return replace(exact, demand=demand, signals=signals, at_most_rps=first_rps)


NAMED_RETRIES = 0.05
"""Fewer further tries are not worth a word."""


def with_risk(policy: Policy, state: State) -> Policy:
    """Return the policy with the quantiles of the risk level that this service has learned."""
    if not policy.tuning.has(Component.RISK) or state.risk.level == 0.0:
        return policy
    tuning, risk = policy.tuning, state.risk
    return replace(
        policy,
        tuning=replace(
            tuning,
            expected_share=risk.between(tuning.expected_share, ADDED_AT_MOST),
            kept_share=risk.between(tuning.kept_share, KEPT_AT_MOST),
            record_ratio=risk.between(tuning.record_ratio, RECORD_AT_MOST),
        ),
    )


ADDED_AT_MOST, KEPT_AT_MOST = 0.92, 0.98
"""Quantiles of the forecast at the highest risk level. To keep a replica that runs is cheaper than
to miss a peak shorter than its start, so rarer ones count. Worked: a peak of 2 minutes every 40 is
in the next 4 minutes of one instant in ten."""

RECORD_AT_MOST = 2.0
"""A service whose promise breaks has surges that exceed all of the hour: the next one may be twice
as high as they were."""


def learn_from_outcomes(
    policy: Policy,
    state: State,
    signals: Signals,
    estimate: DemandEstimate,
    counts: ReplicaCounts,
    results: RuleResults,
    now_s: float,
    *,
    reachable: bool = True,
    disturbed: bool = False,
    outcomes: Outcomes | None = None,
    hour_requests: float = 0.0,
) -> State:
    """Count this tick's misses; move the margin, the reserve and the risk level.

    While `disturbed` by a replica that is replaced, or while one alone is late, they say nothing
    about the others; nor while replicas start, about those. Unless the target is `reachable` and no
    obstacle is seen, more replicas would change nothing.
    """
    elapsed_s = 0.0 if state.last_s is None else now_s - state.last_s
    allowed, target_s = 1.0 - policy.latency_percentile, policy.latency_target_s
    if outcomes is None:
        failures = state.failures.observe(state.windows, state.cost, target_s, now_s)
        state = replace(state, failures=failures)
        failing = failures.share(state.windows, policy.stable_window_s)
        outcomes = Outcomes.of(state.windows, target_s, failing)
        if outcomes.late > allowed * outcomes.ended:
            window_s = policy.stable_window_s
            disturbed |= one_alone_is_late(state.windows, target_s, window_s, allowed)
    since_s = None
    if not disturbed:
        since_s = _steady_since_s(state, signals, estimate, counts, results, now_s)
    helps = reachable and state.obstacles.obstacle is None
    steady = (
        since_s is not None
        and now_s - max(since_s, state.ready_since_s) >= policy.pace * STEADY_S
        and reachable
        and counts.warming == 0
        and results.desired.replicas <= counts.ready
    )
    budget = state.budget.observe(outcomes, elapsed_s, steady=steady, pace=policy.pace)
    may_rise = steady and helps and counts.ready < policy.max_replicas
    margin, budget = state.margin.observe(
        budget,
        allowed,
        elapsed_s,
        carrying=max(1, results.carries) if may_rise else 0,
        ready=counts.ready,
    )
    risk, reserve = state.risk, state.reserve
    if helps:
        risk = risk.observe(outcomes, budget, allowed, hour_requests)
        reserve = reserve.observe(budget, allowed, elapsed_s)
    return replace(
        state, steady_since_s=since_s, budget=budget, margin=margin, risk=risk, reserve=reserve
    )


def _steady_since_s(
    state: State,
    signals: Signals,
    estimate: DemandEstimate,
    counts: ReplicaCounts,
    results: RuleResults,
    now_s: float,
) -> float | None:
    """Return since when the ready replicas carry the counted arrivals; None while they do not.

    It begins only once the queue of the time before has been worked off: answers to requests that
    came when replicas were too few are late, and say nothing about the present.
    """
    enough = results.known and counts.ready > 0 and results.carries <= counts.ready
    exact = estimate.demand.known is DemandKnown.EXACT
    if not (enough and exact and signals.arrival_rps.fresh):
        return None
    if state.steady_since_s is not None:
        return state.steady_since_s
    waiting = signals.waiting.value or 0.0
    return now_s if waiting <= estimate.queue_bound else None


def notes(state: State, demand: Demand, now_s: float) -> tuple[str, ...]:
    """Return the evidence that determines this tick, as text."""
    found = []
    if demand.known is not DemandKnown.EXACT:
        found.append(demand.detail)
    if state.obstacles.obstacle is not None:
        found.append(state.obstacles.text(now_s))
    late_share = state.budget.late_share
    if state.margin.beta > 0.0 and late_share is not None:
        found.append(f"{100 * late_share:.2g}% of the last hour's requests were late")
    return tuple(found)
