"""Learns from missed targets: the error budget, the margin, the reserve and the risk level."""

from __future__ import annotations

from headroom.scaling.evidence.demand_estimate import DemandEstimate
from headroom.scaling.frozen import replace
from headroom.scaling.promise.error_budget import Outcomes, one_alone_is_late
from headroom.scaling.promise.failures import Failures
from headroom.scaling.rules.rule_results import RuleResults
from headroom.scaling.state.state import State
from headroom.scaling.values.decision import DemandKnown, ReplicaCounts
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
    allowed = 1.0 - policy.latency_percentile
    failures = state.failures
    if outcomes is None:
        failures, outcomes, alone = _counted(policy, state, now_s)
        disturbed |= alone
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
        state,
        failures=failures,
        steady_since_s=since_s,
        budget=budget,
        margin=margin,
        risk=risk,
        reserve=reserve,
    )


def _counted(policy: Policy, state: State, now_s: float) -> tuple[Failures, Outcomes, bool]:
    """Return what ended since the last tick, without failures that no replica prevents.

    Also whether it is one replica alone that is late.
    """
    target_s, window_s = policy.latency_target_s, policy.stable_window_s
    failures = state.failures.observe(state.windows, state.cost, target_s, now_s)
    outcomes = Outcomes.of(state.windows, target_s, failures.share(state.windows, window_s))
    allowed = 1.0 - policy.latency_percentile
    alone = outcomes.late > allowed * outcomes.ended and one_alone_is_late(
        state.windows, target_s, window_s, allowed
    )
    return failures, outcomes, alone


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
