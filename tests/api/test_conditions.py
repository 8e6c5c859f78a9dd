"""Conditions keep the time since when they hold, and are there from first sight."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.api import conditions
from headroom.api.conditions import Condition, ConditionStatus, ConditionType
from headroom.api.reasons import StatusReason
from headroom.api.timestamps import epoch_s, rfc3339

NOON_S = 1_800_000_000.0


def ready(status: ConditionStatus, **more: Any) -> Condition:
    return Condition(type="Ready", status=status, reason=StatusReason.SERVING, **more)


def test_every_condition_is_unknown_at_first_sight() -> None:
    found = conditions.pending(3, NOON_S)
    assert [c.type for c in found] == list(ConditionType)
    assert {(c.status, c.reason, c.observed_generation) for c in found} == {
        (ConditionStatus.UNKNOWN, StatusReason.PENDING, 3)
    }
    assert {c.last_transition_time for c in found} == {rfc3339(NOON_S)}


@pytest.mark.parametrize(
    ("before", "after", "moves"),
    [
        (ConditionStatus.TRUE, ConditionStatus.TRUE, False),
        (ConditionStatus.TRUE, ConditionStatus.FALSE, True),
        (ConditionStatus.UNKNOWN, ConditionStatus.TRUE, True),
    ],
)
def test_the_time_of_transition_moves_only_with_the_status(
    before: ConditionStatus, after: ConditionStatus, moves: bool
) -> None:
    old = conditions.upsert((), ready(before), NOON_S)
    (new,) = conditions.upsert(
        old, ready(after, message="else", observed_generation=9), NOON_S + 60
    )
    assert new.last_transition_time == rfc3339(NOON_S + 60 if moves else NOON_S)
    assert (new.message, new.observed_generation) == ("else", 9)


def test_a_condition_takes_the_place_of_its_type_and_leaves_the_others() -> None:
    found = conditions.pending(1, NOON_S)
    changed = conditions.upsert(found, ready(ConditionStatus.TRUE), NOON_S + 1)
    assert [c.type for c in changed] == [c.type for c in found]
    assert changed[1:] == found[1:]


def test_a_type_of_someone_else_is_kept() -> None:
    foreign = Condition(type="example.com/Audited", status=ConditionStatus.TRUE, reason="Yes")
    assert foreign in conditions.upsert_all((foreign,), conditions.pending(1, NOON_S), NOON_S)


def test_a_message_is_cut_to_what_a_status_carries() -> None:
    (cut,) = conditions.upsert((), ready(ConditionStatus.TRUE, message="x" * 4000), NOON_S)
    assert len(cut.message) == conditions.MAX_MESSAGE
    assert cut.message.endswith("...")


@pytest.mark.parametrize(
    "stored", [None, 7, "x", {}, [None], [{"type": "Ready"}], [{"status": "Maybe"}]]
)
def test_stored_conditions_that_are_none_are_left_out(stored: object) -> None:
    assert conditions.read({"conditions": stored}) == ()


def test_conditions_survive_the_round_through_the_api_server() -> None:
    found = conditions.pending(1, NOON_S)
    assert conditions.read({"conditions": [c.manifest() for c in found]}) == found


def test_a_condition_that_is_stored_twice_counts_once() -> None:
    (one,) = conditions.upsert((), ready(ConditionStatus.TRUE), NOON_S)
    assert conditions.read({"conditions": [one.manifest()] * 2}) == (one,)


@pytest.mark.parametrize("reason", [*StatusReason, *ConditionType])
def test_reasons_and_types_are_camel_case(reason: str) -> None:
    assert reason.isalnum()
    assert reason[0].isupper()


def test_times_are_read_as_they_are_written() -> None:
    assert rfc3339(NOON_S) == "2027-01-15T08:00:00Z"
    assert epoch_s("2027-01-15T08:00:00Z") == NOON_S
    assert epoch_s("2027-01-15T09:00:00.250000+01:00") == NOON_S + 0.25


@pytest.mark.parametrize("text", ["", "yesterday", "2027-01-15", "2027-01-15T08:00:00"])
def test_a_time_without_a_zone_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="RFC 3339 with a zone"):
        epoch_s(text)
