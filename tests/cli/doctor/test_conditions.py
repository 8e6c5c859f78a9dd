"""The doctor reports every condition that needs attention, with a remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionType
from headroom.cli.commands.doctor.checks.condition_checks import (
    NO_FINDING,
    conditions_need_attention,
)
from headroom.cli.commands.doctor.checks.condition_remedies import REMEDIES
from headroom.cli.commands.doctor.examination import examined
from headroom.cli.commands.doctor.findings import Severity
from support.fakes_doctor import NOW_S, conditioned, saying
from support.reasons_by_use import HEALTHY_REASONS, OF_CONDITIONS


@pytest.mark.parametrize("kind", ConditionType)
@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_every_condition_that_needs_attention_gives_a_finding(
    kind: ConditionType, status: str
) -> None:
    good = "False" if kind is ConditionType.SCALING_LIMITED else "True"
    for reason in OF_CONDITIONS - NO_FINDING:
        facts = conditioned(saying(kind, status, reason))
        found = list(conditions_need_attention(facts, ()))
        if status == good:
            assert found == [], reason
        else:
            assert [one.finding for one in found] == [reason]
            assert found[0].why == f"{kind} is {status}: as it said"


def test_what_is_not_evaluated_yet_follows_from_the_reason_of_ready() -> None:
    """Without a reason of Ready it is a finding, which does not send to the doctor again."""
    message = "not evaluated yet; if this persists, run kubectl headroom doctor"
    pending = saying(ConditionType.SLO_MET, "Unknown", StatusReason.PENDING, message)
    missing = saying(ConditionType.READY, "False", StatusReason.TARGET_NOT_FOUND)
    both = list(conditions_need_attention(conditioned(pending, missing), ()))
    assert [one.finding for one in both] == [StatusReason.TARGET_NOT_FOUND]
    alone = list(conditions_need_attention(conditioned(pending), ()))
    assert [one.why for one in alone] == ["SLOMet is Unknown: not evaluated yet"]


def test_unknown_cost_follows_from_replicas_that_are_not_ready() -> None:
    """Requests cannot be sent before one is."""
    unknown = saying(ConditionType.SLO_FEASIBLE, "Unknown", StatusReason.COST_UNKNOWN)
    for reason in (StatusReason.WARMING_UP, StatusReason.NO_READY_REPLICAS):
        down = saying(ConditionType.READY, "False", reason)
        found = conditions_need_attention(conditioned(down, unknown), ())
        assert [one.finding for one in found] == [reason]
    alone = conditions_need_attention(conditioned(unknown), ())
    assert [one.finding for one in alone] == [StatusReason.COST_UNKNOWN]


@pytest.mark.parametrize(("said", "found"), [("too much", 1), ("the policy forbids it", 2)])
def test_rejected_spec_is_no_failed_write_of_replicas_too(said: str, found: int) -> None:
    ready = saying("Ready", "False", "InvalidSpec", "too much; correct the spec")
    scaled = saying("AbleToScale", "False", "ScaleFailed", f"{said}; fix what is rejected")
    assert len(list(conditions_need_attention(conditioned(ready, scaled), ()))) == found


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("exceeded quota: q, requested: pods=1", "raise the quota"),
        ("failed quota: q: must specify limits.cpu for: server", "set what it names in the resour"),
        ("maximum memory usage per Container is 64Mi, but limit is 256Mi", "LimitRange"),
        ('violates PodSecurity "restricted:latest": unrestricted capabilities', "pod template"),
        ('admission webhook "x" denied the request', "what the admission policy rejects"),
    ],
)
def test_pods_that_may_not_be_created_get_the_remedy_of_what_forbids_them(
    message: str, remedy: str
) -> None:
    said = f'0 of 1 replicas are ready; pods "a" is forbidden: {message}'
    (found,) = examined(conditioned(saying("Ready", "False", "PodCreationForbidden", said)))
    assert remedy in found.remedy


def test_service_at_zero_that_others_scale_says_that_nothing_starts_a_replica() -> None:
    down = saying("Ready", "False", "NoReadyReplicas")
    facts = conditioned(down, spec__scaling={"mode": "Recommend"}, status__replicas=0)
    (found,) = conditions_need_attention(facts, ())
    assert found.remedy.startswith("raise the replicas")


def test_service_without_its_target_is_not_called_unevaluated() -> None:
    """Nothing is decided for it, so its last decision grows old."""
    missing = conditioned(saying("Ready", "False", "TargetNotFound"))
    found = {one.finding for one in examined(replace(missing, now_s=NOW_S + 3600))}
    assert "TargetNotFound" in found
    assert "NotEvaluated" not in found


def test_every_reason_that_needs_attention_has_a_remedy() -> None:
    assert OF_CONDITIONS - NO_FINDING - set(REMEDIES) == HEALTHY_REASONS


@pytest.mark.parametrize(
    ("status", "reason", "severity", "remedy"),
    [
        (
            "False",
            "PartnerNotFound",
            Severity.PROBLEM,
            "correct or remove spec.prefillRef: kubectl",
        ),
        ("False", "PartnerUnsuitable", Severity.PROBLEM, "slo.timeToFirstToken, and only there"),
        ("False", "PartnerUnrelated", Severity.WARNING, "whose requests this one answers"),
        ("Unknown", "PartnerNotSeen", Severity.WARNING, "see the conditions of the other pool"),
    ],
)
def test_partner_that_is_missing_or_wrong_is_found(
    status: str, reason: str, severity: Severity, remedy: str
) -> None:
    (found,) = examined(conditioned(saying("PartnerSeen", status, reason, "so it is")))
    assert (found.finding, found.severity) == (reason, severity)
    assert remedy in found.remedy


def test_reason_of_another_version_gives_a_finding() -> None:
    (found,) = examined(conditioned(saying("Ready", "False", "FromTheFuture")))
    assert (found.finding, found.severity) == ("FromTheFuture", Severity.PROBLEM)


def test_limit_is_warning_only_while_slo_is_missed() -> None:
    limited = saying("ScalingLimited", "True", "MaxReplicas")
    (found,) = examined(conditioned(limited, saying("SLOMet", "True", "WithinTarget")))
    assert found.severity is Severity.NOTE
    both = examined(conditioned(limited, saying("SLOMet", "False", "AboveTarget")))
    assert [(one.finding, one.severity) for one in both] == [
        ("AboveTarget", Severity.PROBLEM),
        ("MaxReplicas", Severity.WARNING),
    ]


HIDDEN = saying("DemandVisible", "False", "HiddenDemand")
RETRIES = saying("DemandVisible", "False", "RetriesCounted")
PINNED = saying("ScalingEffective", "False", "ConnectionsPinned")
DOWNSTREAM = saying("ScalingEffective", "False", "DownstreamLimit")
IDLE = saying("ScalingEffective", "False", "SLOInfeasible")


@pytest.mark.parametrize(
    ("condition", "mode", "severity", "remedy"),
    [
        (HIDDEN, "Service", Severity.NOTE, "nothing to do: replicas are added"),
        (RETRIES, "Service", Severity.WARNING, "exponential backoff and jitter, under a retry"),
        (PINNED, "Service", Severity.WARNING, "set spec.routing.mode to Gateway"),
        (PINNED, "Gateway", Severity.WARNING, "use the Service of the gateway"),
        (DOWNSTREAM, "Service", Severity.WARNING, "spec.scaling.maxReplicas can be lowered"),
        (IDLE, "Service", Severity.PROBLEM, "raise spec.slo.latency.target"),
    ],
    ids=lambda value: value["reason"] if isinstance(value, dict) else None,
)
def test_demand_and_obstacles_have_remedies(
    condition: dict[str, str], mode: str, severity: Severity, remedy: str
) -> None:
    (found,) = examined(conditioned(condition, spec__routing={"mode": mode}))
    assert found.severity is severity
    assert remedy in found.remedy
