"""Every condition that is not as it should be names the next step, whatever the reason."""

from __future__ import annotations

import pytest

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionStatus, ConditionType, pending
from headroom.controller.report.conditions.next_steps import IN_MESSAGE, with_next_step
from support.reasons_by_use import HEALTHY_REASONS, OF_CONDITIONS

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
LONGEST_STEP = 70


@pytest.mark.parametrize("reason", sorted(OF_CONDITIONS - HEALTHY_REASONS - IN_MESSAGE))
def test_condition_that_is_bad_names_the_next_step_briefly(reason: StatusReason) -> None:
    for kind in ConditionType:
        bad = TRUE if kind is ConditionType.SCALING_LIMITED else FALSE
        message = with_next_step(kind, bad, reason, "so it is")
        assert message.startswith("so it is; ")
        assert len(message) <= len("so it is; ") + LONGEST_STEP


@pytest.mark.parametrize("reason", sorted(HEALTHY_REASONS | IN_MESSAGE))
def test_condition_that_is_good_or_explained_gets_no_step(reason: StatusReason) -> None:
    for kind in ConditionType:
        good = FALSE if kind is ConditionType.SCALING_LIMITED else TRUE
        for status in {good, FALSE} if reason in IN_MESSAGE else {good}:
            assert with_next_step(kind, status, reason, "so it is") == "so it is"


@pytest.mark.parametrize(
    ("kind", "reason", "step"),
    [
        (ConditionType.READY, StatusReason.NO_READY_REPLICAS, "no pod is starting"),
        (ConditionType.SLO_MET, StatusReason.NO_READY_REPLICAS, "see Ready"),
        (ConditionType.METRICS_AVAILABLE, StatusReason.METRICS_MISSING, "run kubectl headroom"),
        (ConditionType.SCALING_ACTIVE, StatusReason.METRICS_MISSING, "see MetricsAvailable"),
    ],
)
def test_reason_of_several_conditions_is_explained_by_one(
    kind: ConditionType, reason: StatusReason, step: str
) -> None:
    assert with_next_step(kind, UNKNOWN, reason, "so it is").startswith(f"so it is; {step}")


def test_long_message_is_cut_and_its_step_is_not() -> None:
    bad = with_next_step(ConditionType.READY, FALSE, StatusReason.INVALID_SPEC, 9000 * "x")
    assert (len(bad), bad[-37:]) == (1024, "; correct the spec and apply it again")
    assert len(with_next_step(ConditionType.READY, TRUE, StatusReason.SERVING, 9000 * "x")) == 1024


def test_pending_condition_names_the_doctor() -> None:
    assert all("kubectl headroom doctor" in one.message for one in pending(1, 0.0))
