"""Conditions about demand change only after the change has lasted."""

from __future__ import annotations

import pytest

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionStatus, ConditionType
from headroom.controller.report.conditions.condition_result import ConditionResult
from headroom.controller.report.conditions.damping import BETTER_AFTER_S, WORSE_AFTER_S, Damping

VISIBLE = ConditionType.DEMAND_VISIBLE
TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


def counted(kind: ConditionType = VISIBLE) -> ConditionResult:
    return ConditionResult(kind, TRUE, StatusReason.DEMAND_COUNTED, "every request")


def hidden(message: str = "at least 160/s") -> ConditionResult:
    return ConditionResult(VISIBLE, FALSE, StatusReason.HIDDEN_DEMAND, message)


RETRIES = ConditionResult(VISIBLE, FALSE, StatusReason.RETRIES_COUNTED, "at most 80/s")
MISSING = ConditionResult(VISIBLE, UNKNOWN, StatusReason.METRICS_MISSING, "missing")


def shown(
    found: list[ConditionResult], start: ConditionResult | None = None
) -> list[ConditionResult]:
    """Return what is reported at ticks 2 s apart."""
    damping = Damping()
    if start is not None:
        damping = Damping.of_stored((start.condition(1),))
    reported = []
    for index, one in enumerate(found):
        (last,), damping = damping.damped([one], 2.0 * index)
        reported.append(last)
    return reported


def after_s(reported: list[ConditionResult], reason: StatusReason) -> float:
    return 2.0 * next(index for index, one in enumerate(reported) if one.reason is reason)


@pytest.mark.parametrize(
    ("before", "change", "lasts_s"),
    [
        (counted(), hidden(), WORSE_AFTER_S),
        (hidden(), RETRIES, WORSE_AFTER_S),
        (counted(), MISSING, WORSE_AFTER_S),
        (hidden(), counted(), BETTER_AFTER_S),
        (MISSING, hidden(), 0.0),
        (MISSING, counted(), 0.0),
        (None, hidden(), 0.0),
    ],
)
def test_condition_changes_after_the_change_has_lasted(
    before: ConditionResult | None, change: ConditionResult, lasts_s: float
) -> None:
    assert after_s(shown([change] * 40, before), change.reason) == lasts_s


def test_verdict_that_alternates_is_reported_once() -> None:
    """Hidden for 6 s of every 8 s: never for 10 s, and after that never absent for 60 s."""
    alternating = [hidden(), hidden(), hidden(), counted()] * 30
    assert {one.reason for one in shown(alternating, counted())} == {StatusReason.DEMAND_COUNTED}
    assert {one.reason for one in shown(alternating, hidden())} == {StatusReason.HIDDEN_DEMAND}


def test_message_of_an_unchanged_verdict_is_the_newest() -> None:
    assert shown([hidden("at least 160/s"), hidden("at least 240/s")])[-1].message == (
        "at least 240/s"
    )


def test_clock_that_goes_back_begins_the_wait_again() -> None:
    damping = Damping.of_stored((counted().condition(1),))
    _, damping = damping.damped([hidden()], 100.0)
    (last,), damping = damping.damped([hidden()], 50.0)
    assert last.reason is StatusReason.DEMAND_COUNTED
    (last,), _ = damping.damped([hidden()], 50.0 + WORSE_AFTER_S)
    assert last.reason is StatusReason.HIDDEN_DEMAND


@pytest.mark.parametrize(
    ("before", "change", "lasts_s"),
    [
        ((TRUE, StatusReason.REPLICAS_ALIKE), (UNKNOWN, StatusReason.METRICS_STALE), WORSE_AFTER_S),
        ((FALSE, StatusReason.REPLICA_SLOW), (UNKNOWN, StatusReason.METRICS_STALE), WORSE_AFTER_S),
        ((TRUE, StatusReason.REPLICAS_ALIKE), (FALSE, StatusReason.REPLICA_SLOW), 0.0),
        ((FALSE, StatusReason.REPLICA_SLOW), (TRUE, StatusReason.REPLICAS_ALIKE), 0.0),
        ((UNKNOWN, StatusReason.METRICS_STALE), (TRUE, StatusReason.REPLICAS_ALIKE), 0.0),
    ],
)
def test_health_of_replicas_waits_only_before_it_is_unknown(
    before: tuple[ConditionStatus, StatusReason],
    change: tuple[ConditionStatus, StatusReason],
    lasts_s: float,
) -> None:
    healthy = ConditionType.REPLICAS_HEALTHY
    found = [ConditionResult(healthy, *change, "")] * 40
    assert after_s(shown(found, ConditionResult(healthy, *before, "")), change[1]) == lasts_s


def test_other_conditions_change_at_once() -> None:
    ready = ConditionResult(ConditionType.READY, TRUE, StatusReason.SERVING, "")
    not_ready = ConditionResult(ConditionType.READY, FALSE, StatusReason.WARMING_UP, "")
    damping = Damping.of_stored((ready.condition(1),))
    assert damping.damped([not_ready], 0.0)[0] == [not_ready]


def test_stored_reason_of_another_version_is_replaced_at_once() -> None:
    later = counted().condition(1).model_copy(update={"reason": "FromTheFuture"})
    (last,), _ = Damping.of_stored((later,)).damped([hidden()], 0.0)
    assert last.reason is StatusReason.HIDDEN_DEMAND
