"""Decides the number of replicas: (policy, state, observation) -> (decision, state), in steps.

    learn       windows, cost and cold starts take in the samples
    leave out   replicas that are far slower than the others or fail, and are replaced
    forecast    estimate the arrivals at the time when a new replica would be ready
    recommend   each rule says how many replicas it needs
    correct     compare measured with modelled latency where nothing else explains the difference
    remember    enter the desired replicas into the stabilization windows
    limit       upwards or downwards, then bounds
    explain     reason, message, counterfactuals

Same inputs, same outputs; the only time is `observation.now_s`. If it goes backwards, no time has
passed.
"""

from __future__ import annotations

from headroom.scaling import (
    evidence,
    generating,
    generation_explanation,
    learning,
    rebalancing,
    replacing,
)
from headroom.scaling.cost.cost_learning import claim_of
from headroom.scaling.explanation import explain
from headroom.scaling.frozen import replace
from headroom.scaling.latency_model import corrected_target_s, tail_of
from headroom.scaling.limits import limits
from headroom.scaling.limits.limits import LimitInput
from headroom.scaling.promise.margin import NO_MARGIN
from headroom.scaling.promise.reserve import NO_RESERVE
from headroom.scaling.rule_results import evaluate_rules
from headroom.scaling.serving_model import ReplicaCost, ServingModel
from headroom.scaling.state import State
from headroom.scaling.tuning import Component
from headroom.scaling.values.decision import Decision, LimitApplied, Obstacle
from headroom.scaling.values.observation import Observation
from headroom.scaling.values.policy import Policy, Routing
from headroom.scaling.windows.signals import read_signals


def decide(policy: Policy, state: State, observation: Observation) -> tuple[Decision, State]:
    """Return how many replicas the service should have now, and the state for the next tick."""
    now_s = observation.now_s if state.last_s is None else max(observation.now_s, state.last_s)
    if now_s != observation.now_s:
        observation = replace(observation, now_s=now_s)
    if state.last_s is None:
        state = state.begun(now_s)
    state, observation = learning.leave_out_repeated(state, observation)
    state, counts = learning.learn(
        policy, learning.restart_hold_on_manual_scale_up(state, observation), observation
    )
    signals = read_signals(
        policy, state.windows, observation, learning.standing_queue(policy, state, now_s)
    )
    claim = claim_of(state.windows.last.values())
    cost = state.learner.fit(claim)
    if cost is not None and not policy.tuning.has(Component.VARIATION):
        cost = replace(cost, cv=0.0)
    routing_transition, correction = state.routing_transition.observe(
        policy.routing, state.correction, now_s, policy.tuning.correction_s
    )
    if routing_transition is not state.routing_transition:
        state = replace(state, routing_transition=routing_transition, correction=correction)
    routing, correction_factor = routing_transition.effective_routing(policy.routing, correction)
    state, left_out = replacing.observe(policy, state, signals, observation)
    serving = replacing.serving(counts, left_out)
    ready = [uid for uid in observation.ready_uids if uid not in left_out]
    connections = state.connections.number
    batches = tail_of(policy, cost, routing, state.learner.speeds, ready, connections)
    target_s = corrected_target_s(policy, batches, correction_factor)
    tail: ServingModel | None = batches
    taken: ReplicaCost | None = cost
    judged = signals
    state, generation = generating.observe(policy, state, observation, signals, routing)
    if generation is not None:
        policy, signals, judged = generation.policy, generation.signals, generation.judged
    if generation is not None and generation.fleet is not None:
        tail, taken = generation.fleet, generation.fleet.saturation
        target_s = policy.latency_target_s
    elif generation is not None and generation.awaits_cost:
        batches = tail = taken = None
    state, demand = evidence.estimate_demand(policy, state, judged, taken, serving, ready, now_s)
    risked = learning.with_drain_time(evidence.with_risk(policy, state), state)
    state, expected = learning.forecast_arrivals(
        risked, state, demand.signals, now_s, demand.at_most_rps
    )
    expected = generating.beyond_chance(policy, generation, expected)
    backlogs = learning.backlogs_of(policy, state, tail, ready)
    hidden = generating.for_surge(
        policy, state, generation, expected, observation, serving, ready, demand.recommendation
    )
    rules = evaluate_rules(
        risked,
        expected,
        demand.signals,
        tail,
        serving,
        target_s,
        backlogs,
        hidden=hidden,
        margin=NO_MARGIN if state.obstacles.obstacle else state.margin,
        reserve=NO_RESERVE if state.obstacles.obstacle else state.reserve,
        start_s=state.cold_starts.assumed_s,
        understated=state.contradictions.understated,
        parallel_requests=None if claim is None else claim.max_batch * claim.slots,
    )
    results = rebalancing.with_surge(
        policy, state, replacing.with_surge(policy, state, rules, left_out)
    )
    results = generating.until_seen(generation, state, results)
    if routing is not policy.routing and batches is not None:
        batches = tail_of(policy, cost, policy.routing, state.learner.speeds, ready, connections)
    disturbed = replacing.is_disturbed(state, now_s)
    disturbed = disturbed or rebalancing.is_disturbed(policy, state, now_s)
    if generation is not None and generation.fleet is not None:
        # late answers of a surge say nothing about the rest, nor where replicas are unused
        surging = hidden is not None or state.obstacles.obstacle is not None
        disturbed = disturbed or surging
        state = generating.correct(state, generation, serving, results, now_s, surging=surging)
    elif not disturbed:
        state = learning.correct(policy, state, signals, batches, serving, results, now_s)
    state = evidence.learn_from_outcomes(
        policy,
        state,
        signals,
        demand,
        serving,
        results,
        now_s,
        reachable=tail is None or tail.idle_s <= policy.latency_target_s,
        disturbed=disturbed,
        outcomes=generation.outcomes if generation is not None else None,
        hour_requests=generation.hour_requests if generation is not None else 0.0,
    )
    state = learning.remember(policy, state, signals, results, now_s)
    limit_input = LimitInput(
        policy=policy,
        state=state,
        observation=observation,
        signals=signals,
        counts=counts,
        desired=results.desired,
        known=results.known,
        kept_because=results.kept_because,
        now_s=now_s,
        pinned=policy.routing is Routing.STICKY and state.connections.pinned,
        no_effect=generation is None and _ends_growth(policy, state.obstacles.obstacle),
        contradicted=bool(state.contradictions.found),
    )
    replicas, applied = _limit(limit_input)
    evidence_notes = evidence.notes(state, demand.demand, now_s)
    decision = explain(
        limit_input, state, results, replicas, applied, tail, target_s, evidence_notes
    )
    decision = replace(
        decision,
        demand=demand.demand,
        obstacle=state.obstacles.obstacle,
        obstacle_detail=state.obstacles.text(now_s),
        margin=state.margin.replicas(max(1, results.carries)) / max(1, results.carries),
        late_share=state.budget.late_share,
        left_out=(*state.contradictions.left_out(now_s), *state.repeated_pages.named),
    )
    decision = generation_explanation.described(policy, state, generation, decision)
    decision, state = replacing.step(policy, state, observation, rules, tail, decision)
    decision, state = rebalancing.step(policy, state, observation, tail, target_s, decision)
    changed = not state.changes or state.changes[-1][1] != observation.current
    own = replicas if decision.alone == replicas else observation.current
    changes = (*state.changes, (now_s, observation.current)) if changed else state.changes
    return decision, replace(
        state,
        changes=changes[-_CHANGES_KEPT:],
        flaps=state.flaps.moved(now_s, observation.current, own, state.cold_starts.at_least_s),
        cost=cost,
        decided=replicas,
        last_s=now_s,
    )


def _ends_growth(policy: Policy, obstacle: Obstacle | None) -> bool:
    """Whether more replicas would not help: connections that are spread let them help."""
    pinned = obstacle is Obstacle.CONNECTIONS_PINNED
    return obstacle is not None and not (pinned and policy.rebalances)


_CHANGES_KEPT = 64


def _limit(limit_input: LimitInput) -> tuple[int, tuple[LimitApplied, ...]]:
    """Move towards the desired replicas as far as the limits allow; bounds last."""
    current = limit_input.observation.current
    if limit_input.desired.replicas > current:
        replicas, applied = limits.limit_increase(limit_input)
    elif current > max(limit_input.desired.replicas, limit_input.policy.min_replicas):
        replicas, applied = limits.limit_decrease(limit_input)
    else:
        replicas, applied = current, ()
    replicas, yielded = limits.apply_allocation(limit_input, replicas)
    bounded, cut = limits.apply_bounds(limit_input.policy, replicas)
    return bounded, (*applied, *yielded, *cut)
