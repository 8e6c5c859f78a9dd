"""Rules after decide(): each limits the decision, and none hides the rule that asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.scaling import Decision, Policy, State
from headroom.scaling.post_rules import (
    POST_RULES,
    PostRuleInputs,
    ScaleToZeroInputs,
    apply_post_rules,
)
from headroom.scaling.values.decision import LimitApplied, Recommendation
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.signals import Freshness, Signal, Signals

POLICY = Policy(latency_target_s=0.25, max_replicas=8)
MISSED = "p95 of time to first token is 2s, the target 1s"


def decided(current: int, replicas: int, *limits: LimitApplied) -> Decision:
    direction = Direction.NONE
    if replicas != current:
        direction = Direction.UP if replicas > current else Direction.DOWN
    wants = Recommendation(rule=Reason.LATENCY_MODEL, replicas=replicas, detail="16/s")
    return Decision(
        time_s=100.0,
        current=current,
        replicas=replicas,
        direction=direction,
        reason=Reason.LATENCY_MODEL,
        message="as decided",
        recommendations=(wants,),
        limits=limits,
    )


def after(decision: Decision, **inputs: object) -> tuple[Decision, State]:
    state = replace(State.initial(), decided=decision.replicas)
    return apply_post_rules(
        POLICY,
        State.initial(),
        (decision, state),
        PostRuleInputs(**inputs),  # type: ignore[arg-type]
    )


def test_post_rules_with_default_inputs_return_the_same_objects() -> None:
    decision, state = decided(4, 2), State.initial()
    found, kept = apply_post_rules(POLICY, State.initial(), (decision, state))
    assert found is decision
    assert kept is state


def test_post_rules_run_in_the_documented_order() -> None:
    assert [rule.__name__ for rule in POST_RULES] == [
        "show_capacity_factor",
        "hold_for_token_slo",
        "hold_for_gateway_counts",
        "scale_to_zero",
        "show_client_latency",
    ]


def test_removal_that_is_held_names_the_rule_and_every_limit() -> None:
    decision, state = after(decided(4, 2), token_slo_objection=MISSED, capacity_factor=1.25)
    assert (decision.replicas, decision.direction) == (4, Direction.NONE)
    assert decision.reason is Reason.SCALE_DOWN_MARGIN
    assert decision.message == (
        f"4 replicas kept; LatencyModel needs 2 (16/s); {MISSED} (4 instead of 2); "
        "capacity factor 1.25 for the token SLO"
    )
    assert state.decided == 4


def test_removal_while_gateway_counts_are_unknown_is_held_once() -> None:
    decision, _ = after(decided(4, 2), token_slo_objection=MISSED, gateway_counts_known=False)
    assert [limit.limit for limit in decision.limits] == [Reason.SCALE_DOWN_MARGIN]
    decision, _ = after(decided(4, 2), gateway_counts_known=False)
    assert [limit.limit for limit in decision.limits] == [Reason.METRICS_STALE]
    assert "the gateways' request counts are not known (4 instead of 2)" in decision.message


@pytest.mark.parametrize(
    ("decision", "replicas"),
    [
        (decided(4, 6), 6),
        (decided(10, 2), 8),
        (decided(4, 2, LimitApplied(limit=Reason.YIELDED_TO_PRIORITY, before=4, after=2)), 2),
    ],
    ids=["more replicas", "above maxReplicas", "yielded to priority"],
)
def test_hold_gives_way_to_growth_bounds_and_priority(decision: Decision, replicas: int) -> None:
    found, state = after(decision, token_slo_objection=MISSED)
    assert (found.replicas, state.decided) == (replicas, replicas)


def test_last_replica_after_the_idle_timeout_goes_and_says_why() -> None:
    zero = ScaleToZeroInputs(idle_timeout_s=300.0, idle_s=300.0)
    decision, _ = after(decided(1, 1), zero=zero)
    assert (decision.replicas, decision.reason) == (0, Reason.SCALED_TO_ZERO)
    assert [limit.limit for limit in decision.limits] == [Reason.SCALED_TO_ZERO]
    assert decision.alone == 0
    assert "LatencyModel needs 1 (16/s)" in decision.message
    assert (
        "no request for 300 s (scaling.scaleToZero.idleTimeout) (0 instead of 1)"
        in decision.message
    )


@pytest.mark.parametrize(
    ("zero", "current", "replicas"),
    [
        (ScaleToZeroInputs(idle_timeout_s=300.0, idle_s=299.0), 1, 1),
        (ScaleToZeroInputs(idle_timeout_s=300.0, idle_s=None), 1, 1),
        (ScaleToZeroInputs(idle_timeout_s=300.0, idle_s=900.0, rolling=True), 1, 1),
        (ScaleToZeroInputs(idle_timeout_s=300.0), 0, 0),
        (ScaleToZeroInputs(idle_timeout_s=300.0, held=2), 0, 1),
        (ScaleToZeroInputs(idle_timeout_s=300.0, no_activator_s=29.0), 0, 0),
        (ScaleToZeroInputs(idle_timeout_s=300.0, no_activator_s=30.0), 0, 1),
    ],
    ids=["early", "unknown", "rolling", "stays at zero", "held", "rollout", "no activator"],
)
def test_scale_to_zero_by_idle_time_and_held_requests(
    zero: ScaleToZeroInputs, current: int, replicas: int
) -> None:
    decision, _ = after(decided(current, 1), zero=zero)
    assert decision.replicas == replicas


def test_client_latency_replaces_that_of_the_replicas() -> None:
    signal = Signal(freshness=Freshness.FRESH, value=0.4, age_s=1.0)
    decision, _ = after(decided(2, 2), client_signals=Signals(latency_s=signal))
    assert decision.signals.latency_s is signal
    assert decision.message == "as decided"
