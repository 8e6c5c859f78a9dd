"""Conditions of a service with promises on tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionStatus, ConditionType
from headroom.controller.act.write_result import WriteResult
from headroom.controller.decide.measured_promise import Measured
from headroom.controller.decide.recovery import DecisionFailure
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.report.conditions.condition_result import ConditionResult, TickResult
from headroom.controller.report.conditions.condition_rules import of_tick
from headroom.scaling.generation.promises.class_judgement import ClassState
from headroom.scaling.generation.promises.classes import ClassPromise
from headroom.scaling.values.decision import Decision, ReplicaCounts
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.observation import Observation
from headroom.scaling.values.signals import Freshness, Signal, Signals
from headroom.scaling.values.token_decision import (
    GenerationDecision,
    Identification,
    TokenMeasurement,
)
from headroom.scaling.values.tokens import Binding, Target, TokenTargets
from support.service_world import service

FEASIBLE, MET = ConditionType.SLO_FEASIBLE, ConditionType.SLO_MET
SERVICE = service(
    spec__runtime={"image": "registry.example/vllm:1", "profile": "vllm", "maxBatchSize": 8},
    spec__slo={"timeToFirstToken": {"target": "2s"}, "timePerOutputToken": {"target": "10ms"}},
)
FRESH = Signal(freshness=Freshness.FRESH, value=300.0)
DECISION = Decision(
    time_s=0.0,
    current=2,
    replicas=2,
    direction=Direction.NONE,
    reason=Reason.LATENCY_MODEL,
    message="2 replicas kept",
    signals=Signals(arrival_rps=FRESH, waiting=FRESH, latency_s=FRESH),
    counts=ReplicaCounts(ready=2),
)


def promise(target_s: float, floor_s: float | None) -> TokenMeasurement:
    return TokenMeasurement(
        target=Target(percentile=0.95, seconds=target_s),
        measured_s=None,
        late_share=None,
        expected_s=None,
        floor_s=floor_s,
    )


def generating(known: bool, floor_s: float) -> Decision:
    part = GenerationDecision(
        identification=Identification(known=known),
        first_token=promise(2.0, 0.3),
        output_token=promise(0.01, floor_s),
    )
    return replace(DECISION, generation=part, feasible=not (known and part.infeasible))


def found(
    decision: Decision, kind: ConditionType, *tokens: Measured, **more: Any
) -> ConditionResult:
    tick = TickResult(
        service=SERVICE,
        gathered=Gathered(observation=Observation(now_s=0.0, current=2), deployment=None, pods=()),
        decision=decision,
        written=WriteResult(replicas=decision.replicas),
        tokens=tokens,
        **more,
    )
    (one,) = [one for one in of_tick(tick) if one.kind is kind]
    return one


def test_promise_that_no_replica_keeps_is_named_with_its_floor() -> None:
    one = found(generating(True, 0.021), FEASIBLE)
    assert (one.status, one.reason) == (ConditionStatus.FALSE, StatusReason.SLO_INFEASIBLE)
    assert "p95 of time per output token is 21ms at an idle replica, the target 10ms" in one.message
    assert "time to first token" not in one.message, "that one can be kept"
    assert "more replicas cannot help and none are added for it" in one.message


def test_promises_that_an_idle_replica_keeps_are_feasible() -> None:
    one = found(generating(True, 0.008), FEASIBLE)
    assert (one.status, one.reason) == (ConditionStatus.TRUE, StatusReason.FEASIBLE)
    assert "p95 of time to first token is 300ms at an idle replica, the target 2s" in one.message


@pytest.mark.parametrize("idle_s", [0.01, 0.5, 0.6])
def test_promise_of_a_class_is_infeasible_only_if_an_idle_replica_breaks_it(idle_s: float) -> None:
    first, binding = Target(percentile=0.95, seconds=0.5), Binding.TIME_TO_FIRST_TOKEN
    chat = ClassPromise(name="chat", targets=TokenTargets(first_token=first))
    state = ClassState(promises=(chat,), floors_s={("chat", binding): idle_s})
    one = found(generating(True, 0.008), FEASIBLE, classes=state)
    broken = (
        "p95 of time to first token of class chat is 600ms at an idle replica, the target 500ms"
    )
    assert (one.status is ConditionStatus.FALSE) == (broken in one.message) == (idle_s > 0.5)
    assert ("of class chat" in one.message) == (idle_s > 0.5)


@pytest.mark.parametrize("restarted", [False, True])
def test_failed_decision_says_what_it_cost(restarted: bool) -> None:
    failure = DecisionFailure(error=ValueError("x"), in_a_row=3, kept=True, restarted=restarted)
    one = found(DECISION, ConditionType.SCALING_ACTIVE, failure=failure)
    assert (one.status, one.reason) == (ConditionStatus.UNKNOWN, StatusReason.EVALUATION_FAILED)
    assert "the decision raised ValueError: x; no replica is removed" in one.message
    assert ("what was learned is discarded" in one.message) is restarted


def test_feasibility_is_unknown_while_the_cost_is() -> None:
    one = found(generating(False, 0.021), FEASIBLE)
    assert (one.status, one.reason) == (ConditionStatus.UNKNOWN, StatusReason.COST_UNKNOWN)


@pytest.mark.parametrize(
    ("value_s", "status"),
    [(0.5, ConditionStatus.TRUE), (3.0, ConditionStatus.FALSE), (None, ConditionStatus.UNKNOWN)],
)
def test_slo_without_latency_is_met_by_its_token_promises(
    value_s: float | None, status: ConditionStatus
) -> None:
    """Answers that take 300 s are long, not late."""
    measured = Measured(name="timeToFirstToken", percentile=95, target_s=2.0, value_s=value_s)
    one = found(generating(True, 0.008), MET, measured)
    assert one.status is status
    assert one.message.startswith("p95 of time to first token is")
