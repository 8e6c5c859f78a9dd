"""Connects the replacement of replicas with the decision: its inputs, and inputs of the rules."""

from __future__ import annotations

from collections.abc import Collection

from headroom.scaling.frozen import replace
from headroom.scaling.latency.mixed_fleet import MixedFleet
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.replacement.evidence import Speeds
from headroom.scaling.replacement.situation import Situation
from headroom.scaling.rules.rule_results import RuleResults
from headroom.scaling.serving_model import ServingModel
from headroom.scaling.state.state import State
from headroom.scaling.values.decision import Decision, ReplicaCounts
from headroom.scaling.values.observation import CostModel, Observation
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Freshness, Signals


def observe(
    policy: Policy, state: State, signals: Signals, observation: Observation
) -> tuple[State, frozenset[str]]:
    """Take in the evidence of this tick; return the ready replicas that the rules must not count.

    While some are left out, and until their requests have left the windows, measured latency says
    nothing about the others.
    """
    replacer, now_s = state.replacer, observation.now_s
    evidence = replacer.evidence
    if _usable(signals, observation):
        evidence = evidence.observe(policy, state.windows, observation.ready, _speeds(state), now_s)
    else:
        evidence = evidence.interrupted()
    if evidence is not replacer.evidence:
        replacer = replace(replacer, evidence=evidence)
    left_out = replacer.left_out(policy, observation.ready_uids, observation.current, now_s)
    if left_out:
        replacer = replace(replacer, disturbed_until_s=now_s + policy.stable_window_s)
    if replacer is not state.replacer:
        state = replace(state, replacer=replacer)
    return state, left_out


def serving(counts: ReplicaCounts, left_out: Collection[str]) -> ReplicaCounts:
    """Return the counts without the ready replicas that are left out."""
    return replace(counts, ready=counts.ready - len(left_out)) if left_out else counts


def is_disturbed(state: State, now_s: float) -> bool:
    """Return whether measured latency contains requests of a replica that was left out."""
    return now_s <= state.replacer.disturbed_until_s


def with_surge(
    policy: Policy, state: State, results: RuleResults, ready: Collection[str]
) -> RuleResults:
    """Return the results with one replica more while a successor is started first."""
    if not state.replacer.surges(ready) or results.desired.replicas >= policy.max_replicas:
        return results
    desired = replace(results.desired, replicas=results.desired.replicas + 1)
    return replace(results, desired=desired, needed=results.needed + 1)


def step(
    policy: Policy,
    state: State,
    observation: Observation,
    rules: RuleResults,
    tail: ServingModel | None,
    decision: Decision,
) -> tuple[Decision, State]:
    """Begin or continue a replacement; return the decision that shows it, and the state.

    `rules` are the results without a surge, `tail` the model without the replicas left out.
    """
    replacer = state.replacer
    if replacer.under_way is None and not replacer.evidence.suspicions:
        return decision, state
    ready = observation.ready_uids
    counts, others = decision.counts, len(ready) - 1
    rate_rps = decision.signals.arrival_rps.value

    def others_carry(factor: float) -> bool:
        if tail is None or rate_rps is None or others < 1:
            return False
        return _late(policy, tail, rate_rps, others) <= _late(
            policy, tail, rate_rps, others + 1, factor
        )

    situation = Situation(
        now_s=observation.now_s,
        ready=ready,
        current=observation.current,
        usable=_usable(decision.signals, observation),
        cv=_speeds(state).cv,
        may_surge=rules.desired.replicas < policy.max_replicas
        and observation.allocation is None
        and not counts.unschedulable + counts.broken,
        others_carry=others_carry,
        start_s=state.cold_starts.p90_s,
    )
    replacer = replacer.step(policy, situation)
    shown = replacer.shown(policy, situation)
    state = replace(state, replacer=replacer)
    return (decision if shown is None else decision.showing(shown)), state


def _speeds(state: State) -> Speeds:
    variation = state.learner.variation
    cv = variation.cv if variation.known else None
    return Speeds(cost=state.cost, cv=cv, factors=state.learner.speeds.factors)


def _usable(signals: Signals, observation: Observation) -> bool:
    fresh = signals.freshness is Freshness.FRESH
    return fresh and not observation.rolling and not observation.unlisted_ready


def _late(
    policy: Policy, tail: ServingModel, rate_rps: float, replicas: int, factor: float = 1.0
) -> float:
    """Return the share of late requests of a fleet in which one replica is this slow.

    Also for routing that sees load, which sends a failing replica the most: a lower bound.
    """
    if not isinstance(tail, TailLatency):
        return 0.0 if tail.latency_s(rate_rps, replicas) <= policy.latency_target_s else 1.0
    usual: CostModel = tail.cost
    slow: tuple[tuple[float, int], ...] = ()
    if isinstance(tail, MixedFleet):
        usual, slow = tail.usual, tail.slow
    if factor > 1.0:
        slow = tuple(sorted((*slow, (factor, 1)), reverse=True))
    fleet = MixedFleet(
        cost=usual, percentile=tail.percentile, routing=tail.routing, usual=usual, slow=slow
    )
    return fleet.late(rate_rps, replicas, policy.latency_target_s)
