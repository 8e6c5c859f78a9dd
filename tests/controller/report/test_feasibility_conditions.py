"""A largest batch that is stated too small is a condition, because batches above it were formed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionStatus, ConditionType
from headroom.controller.act.write_result import WriteResult
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.report.conditions.condition_result import ConditionResult, TickResult
from headroom.controller.report.conditions.condition_rules import of_tick
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.observation import CostModel, Observation
from support.fakes_scaling import COST, sample
from support.service_world import service


def found(
    batches: float,
    items: float,
    *,
    stated: int | None,
    cost: CostModel | None = None,
    feasible: bool = True,
) -> ConditionResult:
    """Return SLOFeasible after this many batches with this many requests at one replica."""
    executed = sample("pod-0", 0.0, items, batches=(batches, items, 1.0), cost=cost)
    observation = Observation(now_s=0.0, current=1, samples=(replace(executed, max_batch=stated),))
    tick = TickResult(
        service=service(),
        gathered=Gathered(observation=observation, deployment=None),
        decision=Decision(
            time_s=0.0,
            current=1,
            replicas=1,
            direction=Direction.NONE,
            reason=Reason.LATENCY_MODEL,
            message="1 replica kept",
            floor_latency_s=0.03,
            feasible=feasible,
        ),
        written=WriteResult(replicas=1),
    )
    (one,) = [one for one in of_tick(tick) if one.kind is ConditionType.SLO_FEASIBLE]
    return one


def test_batches_above_the_stated_size_are_named_with_the_setting_to_correct() -> None:
    one = found(800.0, 4000.0, stated=1)
    assert (one.status, one.reason) == (ConditionStatus.UNKNOWN, StatusReason.BATCH_SIZE_EXCEEDED)
    assert one.message == (
        "the server forms batches of 5 requests on average, and runtime.maxBatchSize states at "
        "most 1; set runtime.maxBatchSize to the server's own limit"
    )


def test_few_larger_batches_at_replicas_that_are_too_many_suffice() -> None:
    one = found(6000.0, 6180.0, stated=1)
    assert one.reason is StatusReason.BATCH_SIZE_EXCEEDED
    assert one.message.startswith("the server forms batches of 1.03 requests on average")


@pytest.mark.parametrize(
    ("batches", "items", "stated", "cost"),
    [
        pytest.param(800.0, 4000.0, 8, None, id="as stated"),
        pytest.param(800.0, 800.0, 32, None, id="little load fills no batch"),
        pytest.param(800.0, 815.0, 1, None, id="requests counted before their batch"),
        pytest.param(80_000.0, 80_100.0, 1, None, id="a thousandth too many"),
        pytest.param(3.0, 20.0, 1, None, id="few batches"),
        pytest.param(0.0, 0.0, 1, None, id="no batch"),
        pytest.param(800.0, 4000.0, None, COST, id="the server states it"),
    ],
)
def test_other_batches_are_no_evidence(
    batches: float, items: float, stated: int | None, cost: CostModel | None
) -> None:
    assert found(batches, items, stated=stated, cost=cost).reason is StatusReason.FEASIBLE


def test_a_target_that_no_replica_meets_is_named_first() -> None:
    one = found(800.0, 4000.0, stated=1, feasible=False)
    assert one.reason is StatusReason.SLO_INFEASIBLE
