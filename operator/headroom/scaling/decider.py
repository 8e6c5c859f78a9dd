"""Decides the number of replicas: (policy, state, observation) -> (decision, state), in steps.

    learn       windows, cost and cold starts take in the samples
    leave out   replicas that are far slower than the others or fail, and are replaced
    model       what a replica costs and what the fleet carries, by batches or by generation
    forecast    estimate the arrivals at the time when a new replica would be ready
    recommend   each rule says how many replicas it needs
    correct     compare measured with modelled latency where nothing else explains the difference
    remember    enter the desired replicas into the stabilization windows
    limit       upwards or downwards, then bounds
    explain     reason, message, counterfactuals

Same inputs, same outputs; the only time is `observation.now_s`. If it goes backwards, no time has
passed, and nothing has been counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from headroom.scaling.evidence.demand import estimate_demand
from headroom.scaling.evidence.demand_estimate import DemandEstimate
from headroom.scaling.evidence.misses import learn_from_outcomes, with_risk
from headroom.scaling.evidence.notes import evidence_notes
from headroom.scaling.explanation import generation_explanation
from headroom.scaling.explanation.explanation import explain
from headroom.scaling.forecast.forecast import Expected
from headroom.scaling.forecast.rate_history import LONGEST_GAP_S
from headroom.scaling.frozen import replace
from headroom.scaling.limits.limit_input import LimitInput
from headroom.scaling.promise.margin import NO_MARGIN
from headroom.scaling.promise.reserve import NO_RESERVE
from headroom.scaling.rules.rule_results import RuleResults, evaluate_rules
from headroom.scaling.state.state import State
from headroom.scaling.steps import (
    correcting,
    generating,
    generation_rules,
    learning,
    limiting,
    rebalancing,
    replacing,
    tick_model,
)
from headroom.scaling.steps.pace import at_pace
from headroom.scaling.steps.tick_model import TickModel
from headroom.scaling.values.decision import (
    Decision,
    Demand,
    LimitApplied,
    Recommendation,
    ReplicaCounts,
)
from headroom.scaling.values.observation import Observation
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals
from headroom.scaling.windows.signals import read_signals
from headroom.scaling.windows.sliding_windows import Windows


def decide(policy: Policy, state: State, observation: Observation) -> tuple[Decision, State]:
    """Return how many replicas the service should have now, and the state for the next tick."""
    state, observation = _begun(state, observation)
    policy = at_pace(policy, state.cost)
    state, observation = learning.leave_out_repeated(state, observation)
    policy = learning.as_old_as_written(policy, state)
    now_s = observation.now_s
    state, counts = learning.learn(
        policy, learning.restart_hold_on_manual_scale_up(state, observation), observation
    )
    signals = read_signals(
        policy, state.windows, observation, learning.standing_queue(policy, state, now_s)
    )
    state, left_out = replacing.observe(policy, state, signals, observation)
    serving = replacing.serving(counts, left_out)
    ready: Sequence[str] = observation.ready_uids
    if left_out:
        ready = [uid for uid in ready if uid not in left_out]
    state, model = tick_model.observe(policy, state, observation, signals, ready)
    policy = model.policy
    state, demand = estimate_demand(
        policy, state, model.judged, model.saturated_cost, serving, ready, now_s
    )
    risked = learning.with_drain_time(with_risk(policy, state), state)
    state, expected = learning.forecast_arrivals(
        risked, state, demand.signals, now_s, demand.at_most_rps, observation.ready
    )
    expected = generation_rules.beyond_chance(policy, model.generation, expected)
    hidden = generation_rules.for_surge(
        policy,
        state,
        model.generation,
        expected,
        observation,
        serving,
        ready,
        demand.recommendation,
    )
    rules = _recommend(model, risked, state, demand.signals, expected, hidden, serving, ready)
    results = rebalancing.with_surge(
        policy, state, replacing.with_surge(policy, state, rules, left_out)
    )
    results = generation_rules.until_seen(model.generation, state, results)
    state = _learn_from_results(model, state, demand, serving, results, hidden, now_s)
    limit_input = limiting.limit_input(model, state, observation, counts, results)
    replicas, applied = limiting.limit(limit_input)
    decision = _explain(model, state, limit_input, results, replicas, applied, demand.demand)
    decision, state = replacing.step(policy, state, observation, rules, model.serving, decision)
    decision, state = rebalancing.step(
        policy, state, observation, model.serving, model.target_s, decision
    )
    return decision, _ended(state, model, observation, replicas, decision)


def _begun(state: State, observation: Observation) -> tuple[State, Observation]:
    """Return what the tick starts from: time does not go backwards."""
    last_s = state.last_s
    if last_s is None:
        return state.begun(observation.now_s), observation
    if observation.now_s <= last_s:
        state = replace(state, windows=state.windows.repeating(observation.samples))
        observation = replace(observation, now_s=last_s)
    if observation.now_s - last_s > LONGEST_GAP_S:
        # the process or the clock paused or jumped: counters say nothing about the time between
        state = replace(state, windows=Windows())
    return state, observation


def _recommend(
    model: TickModel,
    risked: Policy,
    state: State,
    signals: Signals,
    expected: Expected | None,
    hidden: Recommendation | None,
    serving: ReplicaCounts,
    ready: Sequence[str],
) -> RuleResults:
    """Evaluate the rules; while an obstacle is seen, what was learned of misses does not count."""
    hindered, claim = state.obstacles.obstacle is not None, model.claim
    return evaluate_rules(
        risked,
        expected,
        signals,
        model.serving,
        serving,
        model.target_s,
        learning.backlogs_of(model.policy, state, model.serving, ready),
        hidden=hidden,
        margin=NO_MARGIN if hindered else state.margin,
        reserve=NO_RESERVE if hindered else state.reserve,
        usual=generation_rules.usual(model.policy, state, model.generation),
        start_s=state.cold_starts.assumed_s,
        understated=state.contradictions.understated,
        parallel_requests=None if claim is None else claim.max_batch * claim.slots,
    )


def _learn_from_results(
    model: TickModel,
    state: State,
    demand: DemandEstimate,
    serving: ReplicaCounts,
    results: RuleResults,
    hidden: Recommendation | None,
    now_s: float,
) -> State:
    """Return the state after the correction of the model, the misses and the desired replicas."""
    policy, generation = model.policy, model.generation
    disturbed = replacing.is_disturbed(state, now_s)
    disturbed = disturbed or rebalancing.is_disturbed(policy, state, now_s)
    if generation is not None and generation.fleet is not None:
        # late answers of a surge say nothing about the rest, nor where replicas are unused
        surging = hidden is not None or state.obstacles.obstacle is not None
        disturbed = disturbed or surging
        state = generating.correct(state, generation, serving, results, now_s, surging=surging)
    elif not disturbed:
        state = correcting.correct(
            policy, state, model.signals, model.batches, serving, results, now_s
        )
    state = learn_from_outcomes(
        policy,
        state,
        model.signals,
        demand,
        serving,
        results,
        now_s,
        reachable=model.reachable,
        disturbed=disturbed,
        outcomes=generation.outcomes if generation is not None else None,
        hour_requests=generation.hour_requests if generation is not None else 0.0,
    )
    return learning.remember(policy, state, model.signals, results, now_s)


def _explain(
    model: TickModel,
    state: State,
    limit_input: LimitInput,
    results: RuleResults,
    replicas: int,
    applied: tuple[LimitApplied, ...],
    demand: Demand,
) -> Decision:
    """Return the decision with its reason and all that it follows from."""
    now_s = limit_input.now_s
    notes = evidence_notes(state, demand, now_s)
    decision = explain(
        limit_input, state, results, replicas, applied, model.serving, model.target_s, notes
    )
    decision = replace(
        decision,
        demand=demand,
        obstacle=state.obstacles.obstacle,
        obstacle_detail=state.obstacles.text(now_s),
        margin=state.margin.replicas(max(1, results.carries)) / max(1, results.carries),
        late_share=state.budget.late_share,
        left_out=(*state.contradictions.left_out(now_s), *state.repeated_pages.named),
    )
    return generation_explanation.described(model.policy, state, model.generation, decision)


def _ended(
    state: State, model: TickModel, observation: Observation, replicas: int, decision: Decision
) -> State:
    """Return the state for the next tick."""
    now_s, current = observation.now_s, observation.current
    changed = not state.changes or state.changes[-1][1] != current
    own = replicas if decision.alone == replicas else current
    changes = (*state.changes, (now_s, current)) if changed else state.changes
    return replace(
        state,
        changes=changes[-_CHANGES_KEPT:],
        flaps=state.flaps.moved(now_s, current, own, state.cold_starts.at_least_s),
        cost=model.cost,
        decided=replicas,
        last_s=now_s,
    )


_CHANGES_KEPT = 64
