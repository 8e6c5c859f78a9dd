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
from headroom.scaling.evidence.misses import TickFindings, learn_from_outcomes, with_risk
from headroom.scaling.explanation.tick_explanation import explain_tick
from headroom.scaling.forecast.rate_history import LONGEST_GAP_S
from headroom.scaling.frozen import replace
from headroom.scaling.rules.rule_results import RuleResults
from headroom.scaling.state.state import State
from headroom.scaling.steps import (
    correcting,
    forecasting,
    generation_rules,
    learning,
    limiting,
    pairing,
    rebalancing,
    replacing,
    tick_model,
    waiting,
)
from headroom.scaling.steps.pace import at_pace
from headroom.scaling.steps.recommending import recommend
from headroom.scaling.steps.tick_model import TickModel
from headroom.scaling.values.decision import (
    Decision,
    Recommendation,
    ReplicaCounts,
)
from headroom.scaling.values.observation import Observation
from headroom.scaling.values.policy import Policy
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
        policy, state.windows, observation, waiting.standing_queue(policy, state, now_s)
    )
    state, left_out = replacing.observe(policy, state, signals, observation)
    serving = replacing.serving(counts, left_out)
    ready: Sequence[str] = observation.ready_uids
    if left_out:
        ready = [uid for uid in ready if uid not in left_out]
    state, model = tick_model.observe(policy, state, observation, signals, ready)
    policy = model.policy
    state, demand = estimate_demand(
        policy,
        state,
        model.judged,
        model.saturated_cost,
        serving,
        ready,
        now_s,
        rolling=observation.rolling,
    )
    usual = waiting.with_drain_time(policy, state)
    risked = with_risk(usual, state)
    state, expected, without_risk = forecasting.forecast_arrivals(
        usual, risked, state, demand.signals, now_s, demand.at_most_rps, observation.ready
    )
    expected = generation_rules.beyond_chance(policy, model.generation, expected)
    state, planned = pairing.expect(state, observation, demand.signals, expected)
    hidden = generation_rules.for_surge(
        policy,
        state,
        model.generation,
        planned,
        observation,
        serving,
        ready,
        demand.recommendation,
    )
    if model.generation is not None:  # its forecast is changed further, whatever its risk level
        without_risk = None
    rules = recommend(
        model, risked, state, demand.signals, planned, without_risk, hidden, serving, ready
    )
    results = rebalancing.with_surge(
        policy, state, replacing.with_surge(policy, state, rules, left_out)
    )
    results = generation_rules.until_seen(model.generation, state, results)
    state = _learn_from_results(model, state, demand, serving, results, hidden, now_s)
    limit_input = limiting.limit_input(model, state, observation, counts, results)
    replicas, applied = limiting.limit(limit_input)
    decision = explain_tick(model, state, limit_input, results, replicas, applied, demand.demand)
    decision = pairing.explained(state, observation, model.generation, expected, decision)
    decision, state = replacing.step(policy, state, observation, rules, model.serving, decision)
    decision, state = rebalancing.step(
        policy, state, observation, model.serving, model.target_s, decision
    )
    return decision, _ended(state, model, observation, replicas, decision)


def _begun(state: State, observation: Observation) -> tuple[State, Observation]:
    """Return state and observation of the tick's start: time does not go backwards."""
    last_s = state.last_s
    if last_s is None:
        return state.begun(observation.now_s), observation
    if observation.now_s <= last_s:
        state = replace(state, windows=state.windows.repeating(observation.samples))
        observation = replace(observation, now_s=last_s)
    unknown_s = max(observation.now_s - last_s, state.windows.unseen_s(observation))
    if unknown_s > LONGEST_GAP_S:
        # process, clock or metrics paused or jumped: counters say nothing about the time between
        state = replace(state, windows=Windows())
    return state, observation


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
        state = correcting.correct_generation(
            state, generation, serving, results, now_s, surging=surging
        )
    elif not disturbed:
        state = correcting.correct(
            policy, state, model.signals, model.batches, serving, results, now_s
        )
    found = TickFindings(
        signals=model.signals,
        estimate=demand,
        counts=serving,
        results=results,
        now_s=now_s,
        reachable=model.reachable,
        disturbed=disturbed,
        outcomes=generation.outcomes if generation is not None else None,
        hour_requests=generation.hour_requests if generation is not None else 0.0,
    )
    state = learn_from_outcomes(policy, state, found)
    return limiting.remember(policy, state, model.signals, results, now_s)


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
