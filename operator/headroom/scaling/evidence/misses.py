"""Learns from missed targets: the error budget, the margin, the reserve and the risk level."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.scaling.evidence.demand_estimate import DemandEstimate
from headroom.scaling.frozen import replace
from headroom.scaling.promise.error_budget import Outcomes, one_alone_is_late
from headroom.scaling.promise.failures import Failures
from headroom.scaling.rules.rule_results import RuleResults
from headroom.scaling.state.state import State
from headroom.scaling.values.decision import ReplicaCounts
from headroom.scaling.values.demand import DemandKnown
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals
from headroom.scaling.values.tuning import Component

STEADY_S = 60.0
"""Time with enough replicas after which a surge's backlog counts as processed."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TickFindings:
    """Findings of a tick, by which its outcomes are judged."""

    signals: Signals
    estimate: DemandEstimate
    counts: ReplicaCounts
    results: RuleResults
    now_s: float
    reachable: bool
    """Whether an idle replica meets the target, as far as is known."""
    disturbed: bool
    """Whether late answers say nothing about most replicas, as while one is replaced."""
    outcomes: Outcomes | None
    """Requests that ended, where the promises on tokens judge them; None: count them."""
    hour_requests: float


def learn_from_outcomes(policy: Policy, state: State, tick: TickFindings) -> State:
    """Count this tick's misses; move the margin, the reserve and the risk level.

    While disturbed by a replica that is replaced, or while one alone is late, they say nothing
    about the others; nor while replicas start, about those. Unless the target is reachable and no
    obstacle is seen, more replicas would change nothing.
    """
    elapsed_s = 0.0 if state.last_s is None else tick.now_s - state.last_s
    allowed, ready = 1.0 - policy.latency_percentile, tick.counts.ready
    failures, outcomes, alone = _ended(policy, state, tick)
    since_s = None if tick.disturbed or alone else _steady_since_s(state, tick)
    steady = since_s is not None and _is_steady(policy, state, tick, since_s)
    helps = tick.reachable and state.obstacles.obstacle is None
    budget = state.budget.observe(outcomes, elapsed_s, steady=steady, pace=policy.pace)
    may_rise = steady and helps and ready < policy.max_replicas
    carrying = max(1, tick.results.carries) if may_rise else 0
    margin, budget = state.margin.observe(
        budget, allowed, elapsed_s, carrying=carrying, ready=ready
    )
    risk, reserve = state.risk, state.reserve
    if helps:
        risk = risk.observe(outcomes, budget, allowed, tick.hour_requests)
        reserve = reserve.observe(budget, allowed, elapsed_s)
    return replace(
        state,
        failures=failures,
        steady_since_s=since_s,
        budget=budget,
        margin=margin,
        risk=risk,
        reserve=reserve,
    )


def _ended(policy: Policy, state: State, tick: TickFindings) -> tuple[Failures, Outcomes, bool]:
    """Return the requests that ended in this tick, without failures that no replica prevents.

    Also whether it is one replica alone that is late.
    """
    if tick.outcomes is not None:
        return state.failures, tick.outcomes, False
    target_s, window_s = policy.latency_target_s, policy.stable_window_s
    failures = state.failures.observe(state.windows, state.cost, target_s, tick.now_s)
    outcomes = Outcomes.of(state.windows, target_s, failures.share(state.windows, window_s))
    allowed = 1.0 - policy.latency_percentile
    alone = outcomes.late > allowed * outcomes.ended and one_alone_is_late(
        state.windows, target_s, window_s, allowed
    )
    return failures, outcomes, alone


def _is_steady(policy: Policy, state: State, tick: TickFindings, since_s: float) -> bool:
    """Return whether the ready replicas alone have carried the arrivals for long enough."""
    return (
        tick.now_s - max(since_s, state.ready_since_s) >= policy.pace * STEADY_S
        and tick.reachable
        and tick.counts.warming == 0
        and tick.results.desired.replicas <= tick.counts.ready
    )


def _steady_since_s(state: State, tick: TickFindings) -> float | None:
    """Return since when the ready replicas carry the counted arrivals; None while they do not.

    It begins only once the queue of the time before has been worked off: answers to requests that
    came when replicas were too few are late, and say nothing about the present.
    """
    results, ready, signals = tick.results, tick.counts.ready, tick.signals
    enough = results.known and ready > 0 and results.carries <= ready
    exact = tick.estimate.demand.known is DemandKnown.EXACT
    if not (enough and exact and signals.arrival_rps.fresh):
        return None
    if state.steady_since_s is not None:
        return state.steady_since_s
    waiting = signals.waiting.value or 0.0
    return tick.now_s if waiting <= tick.estimate.queue_bound else None
