"""Conditions exist from the first evaluation and keep their transition time."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.api.reasons import StatusReason
from headroom.api.service_status import conditions
from headroom.api.service_status.conditions import Condition, ConditionStatus, ConditionType
from headroom.api.timestamps import epoch_s, rfc3339
from headroom.scaling.values.decision_reason import Reason

NOON_S = 1_800_000_000.0


def ready(status: ConditionStatus, **more: Any) -> Condition:
    return Condition(type="Ready", status=status, reason=StatusReason.SERVING, **more)


def test_conditions_of_new_service_are_unknown() -> None:
    found = conditions.pending(3, NOON_S)
    assert [c.type for c in found] == list(ConditionType)
    assert {(c.status, c.reason, c.observed_generation) for c in found} == {
        (ConditionStatus.UNKNOWN, StatusReason.PENDING, 3)
    }
    assert {c.last_transition_time for c in found} == {rfc3339(NOON_S)}


def saying(kind: str, status: str, reason: str) -> Condition:
    return Condition(type=kind, status=ConditionStatus(status), reason=reason)


@pytest.mark.parametrize(
    ("found", "decided", "reason"),
    [
        pytest.param([("Ready", "True", "Serving")], "LatencyModel", "LatencyModel", id="decided"),
        pytest.param([], None, None, id="new"),
        pytest.param(
            [("Ready", "False", "ReplicasBroken")],
            "MetricsMissing",
            "ReplicasBroken",
            id="metrics are missing because no replica starts",
        ),
        pytest.param(
            [("Ready", "True", "Serving"), ("AbleToScale", "False", "AutoscalerConflict")],
            "LatencyModel",
            "AutoscalerConflict",
            id="another autoscaler",
        ),
        pytest.param(
            [("Ready", "True", "Serving"), ("MetricsAvailable", "Unknown", "CollectingMetrics")],
            "MetricsMissing",
            "CollectingMetrics",
            id="the operator has just started",
        ),
        pytest.param(
            [("Ready", "True", "Serving"), ("MetricsAvailable", "Unknown", "CollectingMetrics")],
            "MinReplicas",
            "MinReplicas",
            id="a decision that needs no metrics",
        ),
        pytest.param(
            [("Ready", "False", "TargetNotFound")], None, "TargetNotFound", id="no target"
        ),
        pytest.param([("Ready", "Unknown", "Pending")], None, None, id="not known"),
    ],
)
def test_reason_is_why_it_does_not_serve_or_scale_before_that_of_the_decision(
    found: list[tuple[str, str, str]], decided: str | None, reason: str | None
) -> None:
    assert conditions.reason_of(tuple(saying(*one) for one in found), decided) == reason


@pytest.mark.parametrize(
    ("before", "after", "moves"),
    [
        (ConditionStatus.TRUE, ConditionStatus.TRUE, False),
        (ConditionStatus.TRUE, ConditionStatus.FALSE, True),
        (ConditionStatus.UNKNOWN, ConditionStatus.TRUE, True),
    ],
)
def test_transition_time_changes_only_with_the_status(
    before: ConditionStatus, after: ConditionStatus, moves: bool
) -> None:
    old = conditions.upsert((), ready(before), NOON_S)
    (new,) = conditions.upsert(
        old, ready(after, message="else", observed_generation=9), NOON_S + 60
    )
    assert new.last_transition_time == rfc3339(NOON_S + 60 if moves else NOON_S)
    assert (new.message, new.observed_generation) == ("else", 9)


def test_upsert_replaces_the_condition_of_the_same_type() -> None:
    found = conditions.pending(1, NOON_S)
    changed = conditions.upsert(found, ready(ConditionStatus.TRUE), NOON_S + 1)
    assert [c.type for c in changed] == [c.type for c in found]
    assert changed[1:] == found[1:]


def test_upsert_keeps_unknown_types() -> None:
    foreign = Condition(type="example.com/Audited", status=ConditionStatus.TRUE, reason="Yes")
    assert foreign in conditions.upsert_all((foreign,), conditions.pending(1, NOON_S), NOON_S)


def test_message_too_long_is_cut() -> None:
    (cut,) = conditions.upsert((), ready(ConditionStatus.TRUE, message="x" * 4000), NOON_S)
    assert len(cut.message) == conditions.MAX_MESSAGE
    assert cut.message.endswith("...")


@pytest.mark.parametrize(
    "stored", [None, 7, "x", {}, [None], [{"type": "Ready"}], [{"status": "Maybe"}]]
)
def test_read_skips_invalid_conditions(stored: object) -> None:
    assert conditions.read({"conditions": stored}) == ()


def test_conditions_written_read_back_equal() -> None:
    found = conditions.pending(1, NOON_S)
    assert conditions.read({"conditions": [c.manifest() for c in found]}) == found


def test_read_keeps_one_condition_per_type() -> None:
    (one,) = conditions.upsert((), ready(ConditionStatus.TRUE), NOON_S)
    assert conditions.read({"conditions": [one.manifest()] * 2}) == (one,)


@pytest.mark.parametrize("reason", [*StatusReason, *ConditionType])
def test_reasons_and_types_are_camel_case(reason: str) -> None:
    assert reason.isalnum()
    assert reason[0].isupper()


def test_times_written_read_back_equal() -> None:
    assert rfc3339(NOON_S) == "2027-01-15T08:00:00Z"
    assert epoch_s("2027-01-15T08:00:00Z") == NOON_S
    assert epoch_s("2027-01-15T09:00:00.250000+01:00") == NOON_S + 0.25


@pytest.mark.parametrize("text", ["", "yesterday", "2027-01-15", "2027-01-15T08:00:00"])
def test_time_without_zone_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="RFC 3339 with a zone"):
        epoch_s(text)


def test_decision_and_status_reasons_with_one_name_have_one_value() -> None:
    shared = StatusReason.__members__.keys() & Reason.__members__.keys()
    assert {"METRICS_MISSING", "METRICS_STALE", "SCALED_TO_ZERO"} <= shared
    assert {StatusReason[name].value for name in shared} == {Reason[name].value for name in shared}
    assert {one.value for one in StatusReason} & {one.value for one in Reason} == {
        StatusReason[name].value for name in shared
    }
