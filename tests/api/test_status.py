"""The status: what it shows of a decision, and that the schema accepts all of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.api import conditions, status, status_rendering
from headroom.api.crd import custom_resource_definition
from headroom.api.status import Status
from headroom.api.status_durations import duration_text
from headroom.scaling.values.decision import (
    Counterfactual,
    Decision,
    Demand,
    DemandKnown,
    Direction,
    Reason,
    Recommendation,
    ReplicaCounts,
)
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.signals import Freshness, Signal, Signals
from structural_objects import violations

NOON_S = 1_800_000_000.0
SCHEMA = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
    "properties"
]["status"]

DECISION = Decision(
    time_s=NOON_S,
    current=2,
    replicas=3,
    direction=Direction.UP,
    reason=Reason.RATE_LIMITED,
    message="16.2 requests/s need 4 replicas; at most one more per minute",
    recommendations=(
        Recommendation(rule=Reason.LATENCY_MODEL, replicas=4, detail="p95 1.2 s"),
        Recommendation(rule=Reason.MIN_REPLICAS, replicas=1, detail="minReplicas"),
    ),
    counterfactuals=(
        Counterfactual(replicas=2, latency_s=math.inf, utilization=0.987654),
        Counterfactual(replicas=3, latency_s=0.812345, utilization=0.65),
    ),
    signals=Signals(
        arrival_rps=Signal(freshness=Freshness.FRESH, value=16.23456),
        waiting=Signal(freshness=Freshness.STALE, value=3.0),
        latency_s=Signal(freshness=Freshness.FRESH, value=math.inf),
    ),
    counts=ReplicaCounts(ready=2),
    utilization=0.7911,
    cost=CostModel(fixed_s=0.15, per_item_s=0.06, max_batch=4),
    cold_start_s=6.4321,
)


def build(**changes: Any) -> dict[str, Any]:
    given_: dict[str, Any] = {
        "generation": 3,
        "current": 2,
        "selector": "headroom.dev/inference-service=resnet50",
        "conditions": conditions.pending(3, NOON_S)[:1],
        "counts": ReplicaCounts(ready=1, warming=2, late=1, unschedulable=3, broken=4),
    }
    return status_rendering.build(**given_ | changes)


def test_status_shows_the_decision_and_its_inputs() -> None:
    assert build(decision=DECISION, checkpoint={"v": 1, "w": [1.5]}) == {
        "observedGeneration": 3,
        "replicas": 2,
        "readyReplicas": 1,
        "warmingReplicas": 3,
        "unschedulableReplicas": 3,
        "brokenReplicas": 4,
        "selector": "headroom.dev/inference-service=resnet50",
        "decision": {
            "replicas": 3,
            "current": 2,
            "direction": "Up",
            "reason": "RateLimited",
            "strongestRule": "LatencyModel",
            "message": "16.2 requests/s need 4 replicas; at most one more per minute",
            "time": "2027-01-15T08:00:00Z",
            "counterfactuals": [
                {"replicas": 2, "latency": "unbounded", "utilization": 0.988},
                {"replicas": 3, "latency": "812ms", "utilization": 0.65},
            ],
            "recommendations": [
                {"rule": "LatencyModel", "replicas": 4, "detail": "p95 1.2 s"},
                {"rule": "MinReplicas", "replicas": 1, "detail": "minReplicas"},
            ],
        },
        "signals": {
            "arrivalsPerSecond": 16.235,
            "waiting": 3.0,
            "latency": "unbounded",
            "latencySource": "Replicas",
            "utilization": 0.791,
            "freshness": "Stale",
        },
        "demand": {"known": "Exact", "rate": "16.2/s", "requestsPerSecond": 16.235},
        "model": {"fixedCost": "150ms", "perItemCost": "60ms", "maxBatch": 4, "slots": 1},
        "coldStart": {"p90": "6.43s"},
        "checkpoint": '{"v":1,"w":[1.5]}',
        "conditions": [
            {
                "type": "Ready",
                "status": "Unknown",
                "reason": "Pending",
                "message": "not evaluated yet; if this persists, run kubectl headroom doctor",
                "observedGeneration": 3,
                "lastTransitionTime": "2027-01-15T08:00:00Z",
            }
        ],
    }


def test_status_without_decision_omits_dependent_fields() -> None:
    shown = build()
    dependent = {"decision", "signals", "demand", "model", "coldStart", "checkpoint"}
    assert not dependent & set(shown)


def test_missing_signal_is_omitted() -> None:
    nothing = Decision(
        time_s=NOON_S,
        current=2,
        replicas=2,
        direction=Direction.NONE,
        reason=Reason.METRICS_MISSING,
        message="held",
    )
    assert build(decision=nothing)["signals"] == {"freshness": "Missing"}
    assert build(decision=nothing)["decision"]["strongestRule"] == "MetricsMissing"
    assert "demand" not in build(decision=nothing)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.0000001, "0s"),
        (0.000123456, "0.123ms"),
        (0.25049, "250ms"),
        (1.23456, "1.23s"),
        (95.44, "1m35.4s"),
        (4321.0, "1h12m"),
        (math.inf, "unbounded"),
    ],
)
def test_measured_time_has_three_digits(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize("seconds", [math.nan, -1.0])
def test_impossible_measurement_raises(seconds: float) -> None:
    with pytest.raises(ValueError, match="finite number of seconds of at least 0"):
        duration_text(seconds)


def test_long_messages_are_cut() -> None:
    shown = build(decision=_saying("x" * 5000))
    assert len(shown["decision"]["message"]) == conditions.MAX_MESSAGE


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


def _saying(message: str) -> Decision:
    return Decision(
        time_s=NOON_S,
        current=1,
        replicas=1,
        direction=Direction.NONE,
        reason=Reason.WITHIN_TARGET,
        message=message,
    )


COUNTS = st.integers(0, 10**6)
SECONDS = st.floats(0, 1e6) | st.just(math.inf)
SIGNALS = st.just(Signal(freshness=Freshness.MISSING)) | st.builds(
    Signal,
    freshness=st.sampled_from([Freshness.FRESH, Freshness.STALE]),
    value=SECONDS,
)
DECISIONS = st.builds(
    Decision,
    time_s=st.floats(0, 4e9),
    current=COUNTS,
    replicas=COUNTS,
    direction=st.sampled_from(Direction),
    reason=st.sampled_from(Reason),
    message=st.text(),
    recommendations=st.lists(
        st.builds(
            Recommendation,
            rule=st.sampled_from(Reason),
            replicas=COUNTS,
            detail=st.text(),
        ),
        max_size=6,
    ).map(tuple),
    counterfactuals=st.lists(
        st.builds(Counterfactual, replicas=COUNTS, latency_s=SECONDS, utilization=SECONDS),
        max_size=3,
    ).map(tuple),
    signals=st.builds(Signals, arrival_rps=SIGNALS, waiting=SIGNALS, latency_s=SIGNALS),
    utilization=st.none() | SECONDS,
    cost=st.none()
    | st.builds(
        CostModel,
        fixed_s=st.floats(0, 100),
        per_item_s=st.floats(0, 100),
        max_batch=st.integers(1, 512),
    ),
    cold_start_s=st.none() | st.floats(0, 1e5),
    demand=st.builds(
        Demand,
        known=st.sampled_from(DemandKnown),
        rate_rps=st.none() | SECONDS,
        at_most_rps=st.none() | SECONDS,
        detail=st.text(),
    ),
)


@given(DECISIONS)
def test_status_of_any_decision_fits_the_schema(decision: Decision) -> None:
    shown = build(decision=decision)
    assert list(violations(SCHEMA, shown)) == []
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
