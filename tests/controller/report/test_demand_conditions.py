"""Conditions of hidden demand, retries, and obstacles that more replicas cannot change."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionStatus, ConditionType
from headroom.controller.act.write_result import WriteResult
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.report import events
from headroom.controller.report.conditions.condition_result import ConditionResult, TickResult
from headroom.controller.report.conditions.condition_rules import of_tick
from headroom.scaling.values.decision import Decision, ReplicaCounts
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.demand import Demand, DemandKnown, Obstacle
from headroom.scaling.values.observation import Observation
from headroom.scaling.values.replica_defect import Defect, Replacement, ReplacementStep
from headroom.scaling.values.signals import Freshness, Signal, Signals
from support.service_world import service

VISIBLE, EFFECTIVE = ConditionType.DEMAND_VISIBLE, ConditionType.SCALING_EFFECTIVE
SERVICE = service()


def fresh(value: float) -> Signal:
    return Signal(freshness=Freshness.FRESH, value=value)


DECISION = Decision(
    time_s=0.0,
    current=2,
    replicas=2,
    direction=Direction.NONE,
    reason=Reason.LATENCY_MODEL,
    message="2 replicas kept",
    signals=Signals(arrival_rps=fresh(160.0), waiting=fresh(42.0), latency_s=fresh(9.6)),
    counts=ReplicaCounts(ready=2),
    floor_latency_s=0.03,
)
HIDDEN = Demand(
    known=DemandKnown.AT_LEAST,
    rate_rps=160.0,
    at_most_rps=533.0,
    detail="64 requests in flight at 2 saturated replicas",
)
RETRIES = Demand(known=DemandKnown.INCLUDES_RETRIES, rate_rps=80.0, detail="31% missed")


def found(decision: Decision, kind: ConditionType) -> ConditionResult:
    tick = TickResult(
        service=SERVICE,
        gathered=Gathered(observation=Observation(now_s=0.0, current=2), deployment=None, pods=()),
        decision=decision,
        written=WriteResult(replicas=decision.replicas),
    )
    (one,) = [one for one in of_tick(tick) if one.kind is kind]
    return one


@pytest.mark.parametrize(
    ("demand", "reason", "message"),
    [
        (Demand(), StatusReason.DEMAND_COUNTED, "every request is counted once"),
        (
            HIDDEN,
            StatusReason.HIDDEN_DEMAND,
            (
                "demand is at least 160/s (64 requests in flight at 2 saturated replicas); up to "
                "533/s; clients wait for saturated replicas before they send more; wait: replicas "
                "are added until clients no longer wait"
            ),
        ),
        (
            RETRIES,
            StatusReason.RETRIES_COUNTED,
            (
                "demand is at most 80/s (31% missed); many requests miss, and clients send them "
                "again; let clients back off with jitter, under a retry budget"
            ),
        ),
    ],
    ids=["counted", "hidden", "retries"],
)
def test_demand_visible_unless_hidden_or_repeated(
    demand: Demand, reason: StatusReason, message: str
) -> None:
    one = found(replace(DECISION, demand=demand), VISIBLE)
    good = reason is StatusReason.DEMAND_COUNTED
    status = ConditionStatus.TRUE if good else ConditionStatus.FALSE
    assert one == (VISIBLE, status, reason, message)


@pytest.mark.parametrize(
    ("obstacle", "detail", "reason", "message"),
    [
        (
            None,
            "",
            StatusReason.NO_OBSTACLE,
            "nothing was found that would make more replicas useless",
        ),
        (
            Obstacle.CONNECTIONS_PINNED,
            "2 of 5 replicas get 98% of 160/s",
            StatusReason.CONNECTIONS_PINNED,
            (
                "connections stay with saturated replicas, and other ready ones get hardly any "
                "request; 2 of 5 replicas get 98% of 160/s; set routing.mode to Gateway, or limit "
                "a connection's age"
            ),
        ),
        (
            Obstacle.DOWNSTREAM_LIMIT,
            "",
            StatusReason.DOWNSTREAM_LIMIT,
            (
                "replicas were added, and together they serve no more than before; look at what "
                "replicas share; more of them do not help"
            ),
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, Obstacle) else "",
)
def test_scaling_is_effective_unless_an_obstacle_is_found(
    obstacle: Obstacle | None, detail: str, reason: StatusReason, message: str
) -> None:
    one = found(replace(DECISION, obstacle=obstacle, obstacle_detail=detail), EFFECTIVE)
    status = ConditionStatus.TRUE if obstacle is None else ConditionStatus.FALSE
    assert one == (EFFECTIVE, status, reason, message)


def test_target_below_idle_is_explained_by_slo_feasible() -> None:
    decision = replace(DECISION, feasible=False)
    feasible = found(decision, ConditionType.SLO_FEASIBLE)
    assert (feasible.status, feasible.reason) == (
        ConditionStatus.FALSE,
        StatusReason.SLO_INFEASIBLE,
    )
    message = "an idle replica exceeds the target; see SLOFeasible"
    assert found(decision, EFFECTIVE) == (
        EFFECTIVE,
        ConditionStatus.FALSE,
        StatusReason.SLO_INFEASIBLE,
        message,
    )


@pytest.mark.parametrize(
    ("decision", "status", "reasons"),
    [
        (
            replace(DECISION, signals=Signals()),
            ConditionStatus.UNKNOWN,
            (StatusReason.METRICS_MISSING, StatusReason.METRICS_MISSING),
        ),
        (
            replace(DECISION, signals=Signals(waiting=fresh(0.0))),
            ConditionStatus.UNKNOWN,
            (StatusReason.COLLECTING_METRICS, StatusReason.COLLECTING_METRICS),
        ),
        (
            replace(DECISION, signals=Signals(), counts=ReplicaCounts(warming=2)),
            ConditionStatus.UNKNOWN,
            (StatusReason.NO_READY_REPLICAS, StatusReason.NO_READY_REPLICAS),
        ),
    ],
    ids=["missing", "collecting", "none ready"],
)
def test_demand_without_metrics_is_unknown(
    decision: Decision, status: ConditionStatus, reasons: tuple[StatusReason, StatusReason]
) -> None:
    both = [found(decision, kind) for kind in (VISIBLE, EFFECTIVE)]
    assert [one.status for one in both] == [status, status]
    assert tuple(one.reason for one in both) == reasons


def test_latency_above_target_refers_to_the_obstacle() -> None:
    pinned = replace(DECISION, obstacle=Obstacle.CONNECTIONS_PINNED)
    missed = found(pinned, ConditionType.SLO_MET)
    assert missed.reason is StatusReason.ABOVE_TARGET
    assert missed.message.endswith("see ScalingEffective")


@pytest.mark.parametrize(
    ("undecided_s", "where"),
    [((0.1, 10.0), "between 100ms and 10s"), ((0.05, math.inf), "above 50ms")],
)
def test_latency_is_not_judged_where_the_bucket_of_the_target_is_too_wide(
    undecided_s: tuple[float, float], where: str
) -> None:
    signals = replace(DECISION.signals, undecided_s=undecided_s)
    missed = found(replace(DECISION, signals=signals), ConditionType.SLO_MET)
    assert (missed.status, missed.reason) == (
        ConditionStatus.UNKNOWN,
        StatusReason.LATENCY_NOT_MEASURED,
    )
    assert f"are {where}, in one bucket" in missed.message


def test_hidden_demand_and_obstacles_are_events() -> None:
    decision = replace(DECISION, demand=HIDDEN, obstacle=Obstacle.CONNECTIONS_PINNED)
    after = tuple(found(decision, kind).condition(3) for kind in (VISIBLE, EFFECTIVE))
    posted = list(events.of_conditions((), after))
    assert [(one.reason, one.warning) for one in posted] == [
        ("HiddenDemand", True),
        ("ConnectionsPinned", True),
    ]
    assert posted[0].note.startswith("DemandVisible is False: demand is at least 160/s")


def test_eviction_that_spreads_connections_is_a_condition_and_an_event() -> None:
    overloaded = Replacement(
        pod="uid",
        defect=Defect.OVERLOADED,
        step=ReplacementStep.DELETE,
        factor=None,
        since_s=0.0,
        detail="has 61% of the load and 2 of 5 have hardly any",
        action="it is evicted, so that its connections are spread",
    )
    decision = replace(DECISION, replacement=overloaded)
    effective = found(decision, EFFECTIVE)
    assert effective.status is ConditionStatus.FALSE
    assert effective.reason is StatusReason.CONNECTIONS_PINNED
    assert "has 61% of the load" in effective.message
    assert found(decision, ConditionType.REPLICAS_HEALTHY).status is ConditionStatus.TRUE
    event = events.of_replacement("resnet-1", decision)
    assert event.reason is StatusReason.CONNECTIONS_REBALANCED
    assert not event.warning
    assert event.note == (
        "evicted pod resnet-1, which has 61% of the load and 2 of 5 have hardly any, so that its "
        "connections are spread"
    )
