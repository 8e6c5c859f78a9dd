"""Limits the desired replicas of a tick: upwards or downwards, then by allocation and bounds."""

from __future__ import annotations

from headroom.scaling.demand.shared_limit import SharedLimit
from headroom.scaling.frozen import replace
from headroom.scaling.generation.pools.holding import reason_to_hold
from headroom.scaling.limits.bounds import apply_allocation, apply_bounds
from headroom.scaling.limits.flaps import LONGEST_HOLD_S
from headroom.scaling.limits.limit_input import LimitInput
from headroom.scaling.limits.scale_down import hold_s, limit_decrease
from headroom.scaling.limits.scale_up import limit_increase
from headroom.scaling.rules.rule_results import RuleResults
from headroom.scaling.state.state import State
from headroom.scaling.steps.tick_model import TickModel
from headroom.scaling.values.decision import LimitApplied, ReplicaCounts
from headroom.scaling.values.demand import Obstacle
from headroom.scaling.values.observation import Observation
from headroom.scaling.values.policy import Policy, Routing
from headroom.scaling.values.signals import Freshness, Signals


def remember(
    policy: Policy, state: State, signals: Signals, results: RuleResults, now_s: float
) -> State:
    """Enter this tick into the stabilization windows; a tick without fresh metrics leaves a gap.

    What stale metrics required is held too: replicas were requested for it, and those requested
    while a pod was silent for a few seconds would otherwise be removed as soon as it answers.
    Holds after flaps keep what the learned risk level adds only while the hour's error budget is
    spent: the level itself keeps replicas for as long as it expects a surge.
    """
    if signals.freshness is Freshness.MISSING or not results.known:
        return state
    longest_s = max(hold_s(policy, state), LONGEST_HOLD_S)
    spent = state.budget.unspent(1.0 - policy.latency_percentile) == 0.0
    arrived = results.needed_by_arrivals if spent else results.needed_without_risk
    state = replace(
        state,
        needed_high=state.needed_high.add(now_s, results.needed, longest_s),
        arrivals_high=state.arrivals_high.add(now_s, arrived, longest_s),
    )
    if signals.freshness is Freshness.STALE:
        return state
    return replace(
        state,
        desired_low=state.desired_low.add(
            now_s, results.desired.replicas, policy.scale_up_stabilization_s
        ),
        coverage=state.coverage.seen(now_s, max(policy.stale_after_s, 3 * policy.tick_s)),
    )


def limit_input(
    model: TickModel,
    state: State,
    observation: Observation,
    counts: ReplicaCounts,
    results: RuleResults,
) -> LimitInput:
    """Return the input of the limits."""
    policy, partner = model.policy, observation.partner
    return LimitInput(
        policy=policy,
        state=state,
        observation=observation,
        signals=model.signals,
        counts=counts,
        desired=results.desired,
        known=results.known,
        kept_because=results.kept_because,
        now_s=observation.now_s,
        pinned=policy.routing is Routing.STICKY and state.connections.pinned,
        no_effect=model.generation is None and _ends_growth(policy, state.obstacles.obstacle),
        most_useful=_most_useful(state.shared_limit, observation.current),
        contradicted=bool(state.contradictions.found),
        held_for="" if partner is None else reason_to_hold(partner),
    )


def limit(given: LimitInput) -> tuple[int, tuple[LimitApplied, ...]]:
    """Move towards the desired replicas as far as the limits allow; bounds last."""
    current = given.observation.current
    if given.desired.replicas > current:
        replicas, applied = limit_increase(given)
    elif current > max(given.desired.replicas, given.policy.min_replicas):
        replicas, applied = limit_decrease(given)
    else:
        replicas, applied = current, ()
    replicas, yielded = apply_allocation(given, replicas)
    bounded, cut = apply_bounds(given.policy, replicas)
    return bounded, (*applied, *yielded, *cut)


def _most_useful(shared: SharedLimit, current: int) -> int | None:
    """Return the replicas beyond which none helps, as far as is known."""
    return current if shared.waits else shared.most


def _ends_growth(policy: Policy, obstacle: Obstacle | None) -> bool:
    """Return whether more replicas would not help: connections that are spread let them help."""
    pinned = obstacle is Obstacle.CONNECTIONS_PINNED
    return obstacle is not None and not (pinned and policy.rebalances)
