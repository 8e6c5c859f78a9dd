"""The status shows the decision, and the schema accepts all of it."""

from __future__ import annotations

import math

import pytest

from api.decisions_for_status import DECISION, NOON_S, build, saying
from headroom.api.service_status import conditions
from headroom.api.service_status.status_durations import duration_text
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.decision_reason import Direction, Reason


def test_status_shows_the_decision_and_its_inputs() -> None:
    assert build(decision=DECISION, checkpoint={"v": 1, "w": [1.5]}) == {
        "observedGeneration": 3,
        "replicas": 2,
        "readyReplicas": 1,
        "warmingReplicas": 3,
        "unschedulableReplicas": 3,
        "brokenReplicas": 4,
        "selector": "headroom.dev/inference-service=resnet50",
        "reason": "RateLimited",
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
    shown = build(decision=saying("x" * 5000))
    assert len(shown["decision"]["message"]) == conditions.MAX_MESSAGE
