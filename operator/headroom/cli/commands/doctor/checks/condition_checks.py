"""Findings from conditions: every condition that needs attention, unless a cause was found."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from headroom.api.reasons import StatusReason, reason_of
from headroom.api.service_status.conditions import Condition, ConditionStatus, ConditionType
from headroom.api.start_steps import (
    step_to_admit,
    step_to_fetch,
    step_to_read,
    step_to_schedule,
    step_to_start,
    without_doctor,
)
from headroom.cli.commands.doctor.checks.condition_remedies import remedy_of
from headroom.cli.commands.doctor.facts import Facts, service_status, subject
from headroom.cli.commands.doctor.findings import Diagnosis, Severity
from headroom.console.service_state import needing_attention

_R = StatusReason
MOST_NAMED = 2
"""Conditions of one reason that a finding lists; of more it names the first."""

NO_FINDING = frozenset({_R.SCALED_TO_ZERO})
"""Intended: scaleToZero removed the last replica."""
NOTES = frozenset(
    {
        *(_R.PENDING, _R.WARMING_UP, _R.COLLECTING_METRICS, _R.NO_TRAFFIC, _R.COST_UNKNOWN),
        *(_R.CLASS_NOT_MEASURED, _R.LATENCY_NOT_MEASURED, _R.EXTERNALLY_SCALED, _R.HIDDEN_DEMAND),
    }
)
"""They pass, or were configured, or are being answered."""
LIMITS = frozenset(
    {
        *(_R.MAX_REPLICAS, _R.OPERATOR_LIMIT, _R.RATE_LIMITED, _R.CAPACITY_SHORTAGE),
        _R.YIELDED_TO_PRIORITY,
    }
)
"""Notes while the SLO is met, else warnings."""
WARNINGS = frozenset(
    {
        *(_R.RECOMMEND_ONLY, _R.NO_GATEWAY, _R.NO_ACTIVATOR, _R.SCALING_DISABLED),
        *(_R.NO_PORT_LEFT, _R.GATEWAY_CONFIGURATION_FULL, _R.GATEWAY_BYPASSED),
        *(_R.REPLICA_SLOW, _R.REPLICA_FAILING),
        *(_R.REPLICA_IMPLAUSIBLE, _R.BATCH_SIZE_EXCEEDED),
        *(_R.PARTNER_NOT_SEEN, _R.PARTNER_UNRELATED),
        *(_R.RETRIES_COUNTED, _R.CONNECTIONS_PINNED, _R.DOWNSTREAM_LIMIT),
    }
)
_METRICS = frozenset({_R.METRICS_MISSING, _R.METRICS_STALE})
_NO_METRICS = frozenset({_R.WRONG_PORT, _R.WRONG_PROFILE, _R.PROMETHEUS_UNREACHABLE, *_METRICS})
_CAUSES: dict[StatusReason, frozenset[StatusReason]] = {
    _R.METRICS_MISSING: _NO_METRICS,
    _R.METRICS_STALE: _NO_METRICS,
    _R.PENDING: frozenset({_R.NOT_EVALUATED}),
    _R.REPLICAS_UNSCHEDULABLE: frozenset({_R.NODES_UNAVAILABLE}),
}
"""Findings of other checks that explain a reason."""
_FOLLOWS_FROM_READY = frozenset({_R.NO_READY_REPLICAS, _R.PENDING, _R.COST_UNKNOWN})
"""Conditions that stay undecided while Ready says what is wrong."""


def conditions_need_attention(facts: Facts, found: Sequence[Diagnosis]) -> Iterator[Diagnosis]:
    """Yield one finding per reason that no other check has explained."""
    for one in facts.services:
        explained = {each.finding for each in found if each.subject == subject(one)}
        status = service_status(one)
        by_reason: dict[str, list[Condition]] = {}
        slo_missed = any(
            each.type == ConditionType.SLO_MET and each.status is ConditionStatus.FALSE
            for each in status.conditions
        )
        bad = needing_attention(status.conditions)
        ready = next((each for each in bad if each.type == ConditionType.READY), None)
        for condition in bad:
            by_reason.setdefault(condition.reason, []).append(condition)
        for text, conditions in by_reason.items():
            reason = reason_of(text)
            causes = frozenset() if reason is None else _CAUSES.get(reason, frozenset())
            if reason in NO_FINDING or explained & {text, *causes}:
                continue
            if ready is not None and _follows(ready, reason, conditions[0].message):
                continue
            if reason in _METRICS and _metrics_available_says_why(bad, conditions):
                continue
            yield Diagnosis(
                finding=text,
                severity=severity_of(
                    reason, {each.type for each in conditions}, slo_missed=slo_missed
                ),
                subject=subject(one),
                why=_why(conditions),
                remedy=_step_in_message(reason, conditions[0].message)
                or remedy_of(one, status, reason),
            )


def _follows(ready: Condition, reason: StatusReason | None, message: str) -> bool:
    """Return whether this reason is a consequence of that of Ready, or repeats it."""
    if reason == ready.reason:
        return False
    if reason is _R.SCALE_FAILED:
        return _without_step(message) == _without_step(ready.message)
    return reason in _FOLLOWS_FROM_READY


def _metrics_available_says_why(bad: Sequence[Condition], these: Sequence[Condition]) -> bool:
    """Return whether missing metrics are a finding of MetricsAvailable, with another reason."""
    kind = ConditionType.METRICS_AVAILABLE
    return any(one.type == kind and one.reason in _METRICS for one in bad) and all(
        one.type != kind for one in these
    )


def _without_step(message: str) -> str:
    return message.rpartition("; ")[0] or message


def severity_of(
    reason: StatusReason | None, types: Collection[str], *, slo_missed: bool
) -> Severity:
    """Return the severity of conditions of these types with this reason."""
    if reason is _R.NO_READY_REPLICAS and ConditionType.READY not in types:
        return Severity.NOTE  # a service at zero has no metrics
    if reason in NOTES or (reason in LIMITS and not slo_missed):
        return Severity.NOTE
    return Severity.WARNING if reason in WARNINGS | LIMITS else Severity.PROBLEM


def _why(conditions: Sequence[Condition]) -> str:
    shown = conditions if len(conditions) <= MOST_NAMED else conditions[:1]
    named = " and ".join(f"{one.type} is {one.status}" for one in shown)
    if rest := len(conditions) - len(shown):
        named += f", and {rest} more conditions with it"
    return f"{named}: {without_doctor(conditions[0].message)}"


_IN_MESSAGE = {
    _R.WARMING_UP: step_to_start,
    _R.REPLICAS_BROKEN: step_to_start,
    _R.MODEL_UNAVAILABLE: step_to_fetch,
    _R.REPLICAS_UNSCHEDULABLE: step_to_schedule,
    _R.POD_CREATION_FORBIDDEN: step_to_admit,
    _R.METRICS_STALE: step_to_read,
}


def _step_in_message(reason: StatusReason | None, message: str) -> str:
    """Return the step that Kubernetes' own message implies; empty if it implies none."""
    return _IN_MESSAGE[reason](message) if reason in _IN_MESSAGE else ""
