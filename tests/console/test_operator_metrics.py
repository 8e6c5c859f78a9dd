"""Metrics of the operator about its services."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.api import InferenceService
from headroom.ops.operator_metrics import OperatorMetrics
from headroom.scaling import (
    Decision,
    Demand,
    DemandKnown,
    Direction,
    Freshness,
    Obstacle,
    Reason,
    Signal,
    Signals,
)
from support.service_world import service

pytestmark = pytest.mark.clock

DECISION = Decision(
    time_s=1_800_000_000.0,
    current=2,
    replicas=3,
    direction=Direction.UP,
    reason=Reason.UTILIZATION_CEILING,
    message="2 -> 3 replicas",
    signals=Signals(arrival_rps=Signal(freshness=Freshness.FRESH, value=12.5, age_s=1.0)),
    utilization=0.7,
)


def shown(instruments: OperatorMetrics, start: str) -> list[str]:
    return [line for line in instruments.page().decode().splitlines() if line.startswith(start)]


SPACE = service().namespace


def named(name: str) -> InferenceService:
    return replace(service(), name=name)


def test_decision_metrics_last_until_service_is_deleted() -> None:
    instruments = OperatorMetrics()
    instruments.decided(named("resnet"), DECISION)
    instruments.decided(named("bert"), DECISION)
    instruments.forgotten(service().namespace, "resnet")
    assert not [line for line in instruments.page().decode().splitlines() if "resnet" in line]
    mine = f'{{inferenceservice="bert",namespace="{service().namespace}"'
    assert f'headroom_service_replicas{mine},state="desired"}} 3.0' in shown(
        instruments, "headroom_service_replicas"
    )
    assert shown(instruments, "headroom_service_utilization_ratio{") == [
        f"headroom_service_utilization_ratio{mine}}} 0.7"
    ]
    assert 'headroom_operator_decisions_total{reason="UtilizationCeiling"} 2.0' in shown(
        instruments, "headroom_operator_decisions_total"
    )


def test_demand_and_obstacles_are_metrics() -> None:
    instruments, mine = OperatorMetrics(), f'inferenceservice="bert",namespace="{SPACE}"'
    hidden = Demand(known=DemandKnown.AT_LEAST, rate_rps=160.0, at_most_rps=533.0)
    pinned = replace(
        DECISION,
        demand=hidden,
        obstacle=Obstacle.CONNECTIONS_PINNED,
        margin=1.4,
        late_share=0.031,
    )
    for decision, value in ((pinned, 1.0), (DECISION, 0.0)):
        instruments.decided(named("bert"), decision)
        page = instruments.page().decode()
        for name, label in (("demand_known", "AtLeast"), ("obstacle", "ConnectionsPinned")):
            key = name.rsplit("_", maxsplit=1)[-1]
            assert f'headroom_service_{name}{{{mine},{key}="{label}"}} {value}\n' in page
        assert f"headroom_service_margin_ratio{{{mine}}} {decision.margin}\n" in page
    assert shown(instruments, "headroom_service_late_requests_ratio{") == []
    assert shown(instruments, "headroom_service_demand_at_most_per_second{") == []
    instruments.decided(named("bert"), replace(DECISION, feasible=False))
    infeasible = f'headroom_service_obstacle{{{mine},obstacle="SLOInfeasible"}} 1.0'
    assert infeasible in shown(instruments, "headroom_service_obstacle")


def test_unknown_value_has_no_series() -> None:
    instruments = OperatorMetrics()
    instruments.decided(named("resnet"), DECISION)
    instruments.decided(named("resnet"), replace(DECISION, utilization=None, signals=Signals()))
    assert shown(instruments, "headroom_service_utilization_ratio{") == []
    assert shown(instruments, "headroom_service_arrivals_per_second{") == []
