"""Kubernetes events for changes of conditions and replicas. Pure.

Few and meaningful: an event says that something changed, never that it is still so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headroom.api.kind import API_VERSION, KIND
from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import (
    Condition,
    Conditions,
    ConditionStatus,
    ConditionType,
)
from headroom.scaling.explanation.decision_message import counted
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.replica_defect import Defect

REPEATED_AFTER_S = 60.0
"""Shortest time between two events of a kind, for conditions that flap."""
MAX_NOTE_BYTES = 1024
"""The API server refuses an event with more, in UTF-8."""

REPORTER = "headroom.dev/operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change, as users see it."""

    reason: str
    note: str
    action: str
    warning: bool = False
    always: bool = False
    """Posted even if the same reason was posted recently; for changes of replicas."""


_BAD, _GOOD = ConditionStatus.FALSE, ConditionStatus.TRUE
_REPORTED = frozenset(
    {
        (ConditionType.READY, _GOOD),
        (ConditionType.READY, _BAD),
        (ConditionType.ABLE_TO_SCALE, _BAD),
        (ConditionType.METRICS_AVAILABLE, _BAD),
        (ConditionType.SLO_FEASIBLE, _BAD),
        (ConditionType.DEMAND_VISIBLE, _BAD),
        (ConditionType.SCALING_EFFECTIVE, _BAD),
        (ConditionType.CAPACITY_AVAILABLE, _BAD),
        (ConditionType.REPLICAS_HEALTHY, _BAD),
        (ConditionType.SCALING_LIMITED, _GOOD),
    }
)
"""Transitions that are posted as events, with the reason of the condition."""


def of_scaling(decision: Decision, replicas: int, requested: int | None = None) -> Event:
    """Return the event of a write of replicas, with the decision or spec.replicas behind it."""
    up = replicas > decision.current
    reason = StatusReason.SCALED_UP if up else StatusReason.SCALED_DOWN
    message = decision.message
    if replicas == decision.replicas:
        message = message.removeprefix(f"{decision.current} -> {counted(replicas)}; ")
    why = f"{decision.reason}: {message}"
    if requested is not None:
        why = f"spec.replicas is {requested}"
    note = f"{decision.current} -> {replicas}, {why}"
    return Event(reason=reason, note=note, action="Scale", always=True)


def of_preemption(preemption: str) -> Event:
    """Report the services that yield accelerators to one that is short of them."""
    return Event(reason=StatusReason.PREEMPTING_LOWER_PRIORITY, note=preemption, action="Scale")


def of_accelerators(difference: str) -> Event:
    """Report that spec.accelerator claims something else than the pod template requests."""
    return Event(
        reason=StatusReason.ACCELERATORS_DIFFER,
        note=f"{difference}; set spec.accelerator to it",
        action="Evaluate",
        warning=True,
    )


def of_replacement(pod: str, decision: Decision) -> Event:
    """Return the event of an eviction."""
    found = decision.replacement
    why = found.detail if found else "is slow or fails"
    if found is not None and found.defect is Defect.OVERLOADED:
        note = f"evicted pod {pod}, which {why}, so that its connections are spread"
        return Event(
            reason=StatusReason.CONNECTIONS_REBALANCED, note=note, action="Evict", always=True
        )
    note = f"evicted pod {pod}, which {why}; its workload creates another"
    return Event(
        reason=StatusReason.REPLICA_REPLACED, note=note, action="Evict", warning=True, always=True
    )


def of_creation(replicas: int) -> Event:
    """Return the event of the Deployment's creation."""
    note = f"created the Deployment with {counted(replicas)}"
    return Event(reason=StatusReason.CREATED, note=note, action="Create", always=True)


def of_adoption(replicas: int) -> Event:
    """Return the event of adopting an orphaned Deployment."""
    note = f"adopted the orphaned Deployment with its {counted(replicas)}"
    return Event(reason=StatusReason.ADOPTED, note=note, action="Adopt", always=True)


def of_rollout(changed: str, undone_of: str = "") -> Event:
    """Return the event of a change of the pod template, or of one that undoes another client's."""
    if undone_of:
        note = (
            f"{undone_of} changed {changed} of the pod template, which is reset to what the "
            "InferenceService says, so its replicas are replaced; change the InferenceService"
        )
        return Event(
            reason=StatusReason.ROLLING_OUT, note=note, action="Apply", warning=True, always=True
        )
    note = f"the pod template changed in {changed}: its replicas are replaced, see spec.rollout"
    return Event(reason=StatusReason.ROLLING_OUT, note=note, action="Apply", always=True)


def of_conditions(before: Conditions, after: Conditions) -> Iterator[Event]:
    """Yield an event per condition that changed its status; a new reason alone is no event."""
    old = {condition.type: condition.status for condition in before}
    at_zero = any(condition.reason == StatusReason.SCALED_TO_ZERO for condition in before)
    for condition in after:
        if old.get(condition.type) is condition.status:
            continue
        reported = (ConditionType(condition.type), condition.status) in _REPORTED
        if reported and not _is_first_warming(condition, old, at_zero=at_zero):
            yield Event(
                reason=condition.reason,
                note=f"{condition.type} is {condition.status}: {condition.message}",
                action="Evaluate",
                warning=(condition.type, condition.status) != (ConditionType.READY, _GOOD),
            )


def _is_first_warming(
    condition: Condition, old: Mapping[str, ConditionStatus], *, at_zero: bool
) -> bool:
    """Return whether a new service warms up, or one that was at zero, which needs no event.

    It is not ready and has no metrics; the event of its scaling says why it starts.
    """
    is_new = at_zero or old.get(condition.type) is ConditionStatus.UNKNOWN
    return is_new and condition.reason in (
        StatusReason.WARMING_UP,
        StatusReason.NO_READY_REPLICAS,
    )


def manifest(
    event: Event, regarding: Mapping[str, Any], *, now_s: float, instance: str
) -> dict[str, Any]:
    """Render as events.k8s.io/v1, about an object given by its metadata."""
    moment = datetime.fromtimestamp(now_s, UTC)
    unique = f"{int(now_s * 1e6):x}.{event.reason.lower()}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": f"{regarding['name']}.{unique}",
            "namespace": regarding["namespace"],
        },
        "eventTime": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": REPORTER,
        "reportingInstance": instance[:128],
        "action": event.action,
        "reason": event.reason,
        "regarding": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": regarding["name"],
            "namespace": regarding["namespace"],
            "uid": regarding["uid"],
        },
        "note": _cut(event.note),
        "type": "Warning" if event.warning else "Normal",
    }


def _cut(note: str) -> str:
    """Cut a note to the length that the API server accepts, between characters."""
    return note.encode(errors="replace")[:MAX_NOTE_BYTES].decode(errors="ignore")
