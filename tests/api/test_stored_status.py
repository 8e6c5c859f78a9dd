"""A stored status is read back whole, in part, or as empty; checkpoints and costs too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from api.decisions_for_status import DECISION, build
from headroom.api.service_status import status
from headroom.api.service_status.status import Status
from headroom.scaling.values.observation import CostModel


def test_checkpoint_too_large_is_omitted() -> None:
    fits = {"w": "x" * (status.MAX_CHECKPOINT - len('{"w":""}'))}
    assert len(build(checkpoint=fits)["checkpoint"]) == status.MAX_CHECKPOINT
    assert "checkpoint" not in build(checkpoint={"w": fits["w"] + "x"})


def test_checkpoint_when_stored_reads_back() -> None:
    assert Status.read(build(checkpoint={"v": [1, None]})).memory == {"v": [1, None]}


NESTED = {"checkpoint": "[" * 5000}


@pytest.mark.parametrize("stored", [{}, {"checkpoint": 3}, {"checkpoint": "{"}, NESTED])
def test_checkpoint_when_unreadable_is_none(stored: dict[str, Any]) -> None:
    assert Status.read(stored).memory is None


def test_status_when_written_reads_back_whole() -> None:
    written = build(decision=DECISION, checkpoint={"v": 1})
    assert Status.read(written).manifest() == written


@pytest.mark.parametrize("stored", [None, [], "text", {}, {"replicas": -1, "conditions": 3}])
def test_status_when_nothing_is_readable_reads_as_empty(stored: object) -> None:
    assert Status.read(stored) == Status()


def test_status_of_another_version_keeps_the_parts_that_are_readable() -> None:
    written = build(decision=DECISION)
    del written["decision"]["strongestRule"], written["decision"]["counterfactuals"][0]["replicas"]
    written["decision"]["recommendations"][1]["rule"] = 5
    written |= {"readyReplicas": "two", "slo": {"attainment": 1.0}, "coldStart": [], "later": 1}
    found = Status.read(written)
    assert found.decision is not None
    assert (found.decision.replicas, found.decision.strongest_rule) == (3, "")
    assert [one.replicas for one in found.decision.counterfactuals] == [3]
    assert [one.detail for one in found.decision.recommendations] == ["p95 1.2 s", "minReplicas"]
    assert (found.replicas, found.ready_replicas, found.slo, found.cold_start) == (2, 0, None, None)


def test_model_cost_when_read_back_keeps_slots() -> None:
    cost = CostModel(fixed_s=0.15, per_item_s=0.06, max_batch=4, slots=4)
    model = Status.read(build(decision=replace(DECISION, cost=cost))).model
    assert model is not None
    assert model.cost == cost


@pytest.mark.parametrize(
    "changed", [{"fixedCost": "soon"}, {"maxBatch": 0}, {"fixedCost": "0s", "perItemCost": "0s"}]
)
def test_model_cost_when_unreadable_is_none(changed: dict[str, Any]) -> None:
    model = {"fixedCost": "150ms", "perItemCost": "60ms", "maxBatch": 4, "slots": 1}
    found = Status.read({"model": model | changed}).model
    assert found is not None
    assert found.cost is None
