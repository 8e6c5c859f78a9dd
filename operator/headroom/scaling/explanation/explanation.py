"""Explains the decision: the binding reason, the sentence for people, and counterfactuals."""

from __future__ import annotations

from headroom.scaling.explanation.decision_message import gap_to_model, message
from headroom.scaling.frozen import replace
from headroom.scaling.limits.limit_input import LimitInput
from headroom.scaling.limits.scale_down import hold_s
from headroom.scaling.rules.rule_results import RuleResults
from headroom.scaling.serving_model import ReplicaCost, ServingModel
from headroom.scaling.state.state import State
from headroom.scaling.values.decision import Counterfactual, Decision, LimitApplied
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Policy


def explain(
    limit_input: LimitInput,
    state: State,
    results: RuleResults,
    replicas: int,
    applied: tuple[LimitApplied, ...],
    tail: ServingModel | None,
    target_s: float,
    evidence: tuple[str, ...],
) -> Decision:
    """Combine the number with everything needed to explain it."""
    current, counts = limit_input.observation.current, limit_input.counts
    direction = Direction.NONE
    if replicas != current:
        direction = Direction.UP if replicas > current else Direction.DOWN
    policy, rate_rps = limit_input.policy, limit_input.signals.arrival_rps.value
    cost: ReplicaCost | None = tail.cost if tail else None
    gap = gap_to_model(policy, limit_input.signals, tail, counts.ready, state.correction.factor)
    decision = Decision(
        time_s=limit_input.now_s,
        current=current,
        replicas=replicas,
        direction=direction,
        reason=Reason.WITHIN_TARGET,
        message="",
        recommendations=results.recommendations,
        limits=applied,
        notes=(*evidence, gap) if gap and direction is not Direction.UP else evidence,
        counterfactuals=counterfactuals(tail, rate_rps, replicas)
        if tail is not None and rate_rps is not None
        else (),
        signals=limit_input.signals,
        counts=counts,
        utilization=rate_rps / (counts.ready * cost.full_batch_rps)
        if cost is not None and rate_rps is not None and counts.ready
        else None,
        feasible=tail is None or tail.idle_s <= policy.latency_target_s,
        floor_latency_s=tail.idle_s if tail else None,
        floor_replicas=policy.min_replicas,
        floor_rps=policy.min_replicas * tail.capacity_rps(target_s, max(1, policy.min_replicas))
        if tail
        else None,
        cost=cost if isinstance(cost, CostModel) else None,
        correction=state.correction.factor,
        cold_start_s=state.cold_starts.p90_s,
    )
    return replace(
        decision,
        reason=_reason(policy, decision, tail),
        message=message(policy, decision, hold_s(policy, state)),
    )


def _reason(policy: Policy, decision: Decision, tail: ServingModel | None) -> Reason:
    """Return the binding rule or limit; without one, the missing knowledge."""
    reason = binding(policy, decision)
    if reason is not Reason.WITHIN_TARGET:
        return reason
    if decision.signals.arrival_rps.value is None:
        return Reason.METRICS_MISSING
    return Reason.COST_UNKNOWN if tail is None else reason


def counterfactuals(
    tail: ServingModel, arrival_rps: float, replicas: int
) -> tuple[Counterfactual, ...]:
    """Return the modelled latency of N-1, N and N+1 ready replicas at this arrival rate."""
    return tuple(
        Counterfactual(
            replicas=number,
            latency_s=tail.latency_s(arrival_rps, number),
            utilization=arrival_rps / (number * tail.cost.full_batch_rps),
        )
        for number in range(max(1, replicas - 1), replicas + 2)
    )


def binding(policy: Policy, decision: Decision) -> Reason:
    """Return the rule or limit that would have to change for the number to change."""
    direction, strongest, counts = decision.direction, decision.strongest, decision.counts
    if decision.limits:
        return decision.limits[-1].limit
    if direction is Direction.NONE and strongest is not None:
        if strongest.replicas > counts.ready and counts.warming:
            return Reason.REPLICAS_WARMING
        if strongest.replicas < decision.current == policy.min_replicas:
            return Reason.MIN_REPLICAS
    if strongest is None:
        return Reason.WITHIN_TARGET
    if strongest.replicas <= policy.min_replicas and direction is not Direction.UP:
        return Reason.MIN_REPLICAS
    return strongest.rule
