"""Rules that run after decide(), in this order. Pure.

    show_capacity_factor       says that the token SLO asks for more capacity
    hold_for_token_slo         no removal while a token SLO is missed or not known
    hold_for_gateway_counts    no removal while the gateways' counts are not known
    scale_to_zero              the last replica goes, or the first one comes
    show_client_latency        latency and attainment as clients see them

Production, the simulator and the console's what-if run the same tuple. A rule that changes the
number appends its limit, one that does not may append a note; the message is composed from both at
the end, so that it still names the rule that asked. Default inputs change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from headroom.scaling.explanation.decision_message import message
from headroom.scaling.limits.scale_down import hold_s
from headroom.scaling.state.state import State
from headroom.scaling.values.decision import Decision, LimitApplied
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signals

WAITS_FOR_ACTIVATOR_S = 30.0
"""Activators that are missing for less, as in a rollout, cost no replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleToZeroInputs:
    """Known facts about a service whose minReplicas is 0 now."""

    idle_timeout_s: float
    idle_s: float | None = None
    """Time without a request, without a gap in what is known."""
    rolling: bool = False
    held: int = 0
    """Requests that activators hold."""
    no_activator_s: float | None = None
    """For how long no activator could hold a request; None while one can."""
    at_activator: Signals = field(default_factory=Signals)
    """Signals while there is no replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostRuleInputs:
    """Inputs of the post-rules."""

    capacity_factor: float = 1.0
    """Factor of the token SLO."""
    capacity_factor_is_largest: bool = False
    token_slo_objection: str = ""
    """Reason why the token SLO allows no removal; empty if it does."""
    gateway_counts_known: bool = True
    """True without gateways too."""
    client_signals: Signals | None = None
    """Signals as the gateways count them; None where requests go directly to the replicas."""
    zero: ScaleToZeroInputs | None = None
    """None: the last replica stays."""


PostRule = Callable[[Policy, PostRuleInputs, Decision], Decision]


def apply_post_rules(
    policy: Policy,
    before: State,
    decided: tuple[Decision, State],
    inputs: PostRuleInputs = PostRuleInputs(),
) -> tuple[Decision, State]:
    """Run all rules on the result of decide(); `before` is the state that it was given.

    A replica that a rule keeps was not removed, so the state counts no flap for it.
    """
    first, state = decided
    decision = first
    for rule in POST_RULES:
        decision = rule(policy, inputs, decision)
    kept = [limit.after for limit in decision.limits[len(first.limits) :] if _keeps(limit)]
    if kept:
        state = replace(state, decided=kept[-1], flaps=before.flaps)
    if (decision.limits, decision.notes) != (first.limits, first.notes):
        decision = replace(decision, message=message(policy, decision, hold_s(policy, state)))
    return decision, state


def show_capacity_factor(policy: Policy, inputs: PostRuleInputs, decision: Decision) -> Decision:
    """Say by how much the token SLO increases capacity."""
    if inputs.capacity_factor == 1.0:
        return decision
    note = f"capacity factor {inputs.capacity_factor:.2f} for the token SLO"
    if inputs.capacity_factor_is_largest:
        note += " (the largest: replicas would be idle)"
    return replace(decision, notes=(*decision.notes, note))


def hold_for_token_slo(policy: Policy, inputs: PostRuleInputs, decision: Decision) -> Decision:
    """Remove nothing while a token SLO is missed or not known."""
    why = inputs.token_slo_objection
    return _without_removal(policy, decision, why, Reason.SCALE_DOWN_MARGIN) if why else decision


def hold_for_gateway_counts(policy: Policy, inputs: PostRuleInputs, decision: Decision) -> Decision:
    """Remove nothing while it is not known how many requests the gateways reject."""
    if inputs.gateway_counts_known:
        return decision
    why = "the gateways' request counts are not known"
    return _without_removal(policy, decision, why, Reason.METRICS_STALE)


def scale_to_zero(policy: Policy, inputs: PostRuleInputs, decision: Decision) -> Decision:
    """Remove the last replica of an idle service; keep it at zero until a request is held.

    decide() knows at least one replica: its 1 becomes 0 here, or stays.
    """
    zero = inputs.zero
    if zero is None:
        return decision
    if decision.current == 0:
        decision = replace(decision, signals=zero.at_activator)
        if zero.held:
            note = f"{zero.held} requests are held for the first replica"
            return replace(decision, reason=Reason.QUEUE_DEPTH, notes=(*decision.notes, note))
        if zero.no_activator_s is not None and zero.no_activator_s >= WAITS_FOR_ACTIVATOR_S:
            note = "one replica, because no activator would hold a request: see RoutingReady"
            return replace(decision, notes=(*decision.notes, note))
        return _to_zero(decision, "no replica is needed until the first request")
    idle = zero.idle_s is not None and zero.idle_s >= zero.idle_timeout_s
    if decision.current > 1 or decision.replicas > 1 or zero.rolling or not idle:
        return decision
    why = f"no request for {zero.idle_timeout_s:g} s (scaling.scaleToZero.idleTimeout)"
    return _to_zero(decision, why)


def show_client_latency(policy: Policy, inputs: PostRuleInputs, decision: Decision) -> Decision:
    """Report the latency and the attainment that the gateways measured."""
    seen = inputs.client_signals
    if seen is None:
        return decision
    signals = replace(
        decision.signals,
        latency_s=seen.latency_s,
        undecided_s=seen.undecided_s,
        attainment=seen.attainment,
    )
    return replace(decision, signals=signals)


POST_RULES: tuple[PostRule, ...] = (
    show_capacity_factor,
    hold_for_token_slo,
    hold_for_gateway_counts,
    scale_to_zero,
    show_client_latency,
)


def _keeps(limit: LimitApplied) -> bool:
    return limit.after > limit.before


def _without_removal(policy: Policy, decision: Decision, why: str, reason: Reason) -> Decision:
    """Keep the current replicas up to maxReplicas, unless the service yields to a priority."""
    kept = min(decision.current, policy.max_replicas)
    yields = any(limit.limit is Reason.YIELDED_TO_PRIORITY for limit in decision.limits)
    if yields or decision.replicas >= kept:
        return decision
    limit = LimitApplied(limit=reason, before=decision.replicas, after=kept, detail=why)
    return replace(
        decision,
        replicas=kept,
        direction=Direction.NONE if kept == decision.current else Direction.DOWN,
        reason=reason,
        limits=(*decision.limits, limit),
    )


def _to_zero(decision: Decision, why: str) -> Decision:
    limit = LimitApplied(limit=Reason.SCALED_TO_ZERO, before=decision.replicas, after=0, detail=why)
    return replace(
        decision,
        replicas=0,
        direction=Direction.NONE if decision.current == 0 else Direction.DOWN,
        reason=Reason.SCALED_TO_ZERO,
        limits=(*decision.limits, limit),
        floor_replicas=0,
        floor_rps=None,
    )
