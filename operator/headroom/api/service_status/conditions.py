"""Conditions: the current state of a service, each with a machine-readable reason.

Types and reasons are API. Every condition exists from the first evaluation on, Unknown at first.
`lastTransitionTime` changes only with the status, so it states how long the status has lasted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, ValidationError

from headroom.api.reasons import StatusReason
from headroom.api.timestamps import rfc3339
from headroom.api.values import Value

MAX_MESSAGE = 1024


class ConditionType(StrEnum):
    """Conditions of every service."""

    READY = "Ready"
    """At least minReplicas are warm and take requests."""
    SCALING_ACTIVE = "ScalingActive"
    """Decisions are made from metrics and written."""
    ABLE_TO_SCALE = "AbleToScale"
    """The last write of replicas was accepted, or none was needed."""
    SCALING_LIMITED = "ScalingLimited"
    """A limit keeps the number of replicas below or above what the rules recommend."""
    METRICS_AVAILABLE = "MetricsAvailable"
    """The metrics that removals depend on are fresh."""
    SLO_MET = "SLOMet"
    """The latency percentile is below its target in the stable window."""
    SLO_FEASIBLE = "SLOFeasible"
    """An idle replica can meet the target."""
    DEMAND_VISIBLE = "DemandVisible"
    """Arrivals are the whole demand: every request is counted, once."""
    SCALING_EFFECTIVE = "ScalingEffective"
    """More replicas can bring latency below its target."""
    CAPACITY_AVAILABLE = "CapacityAvailable"
    """Every replica has a node, and none is broken."""
    REPLICAS_HEALTHY = "ReplicasHealthy"
    """No ready replica is far slower than the others or fails while they answer."""
    ROUTING_READY = "RoutingReady"
    """Requests reach the replicas as routing.mode states, and an activator holds them where
    minReplicas is 0."""
    PARTNER_SEEN = "PartnerSeen"
    """The other one of two coupled pools, prefill and decode, is seen and serves the same requests;
    True where there is none."""


class ConditionStatus(StrEnum):
    """The three values of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


def is_good(kind: str, status: ConditionStatus) -> bool:
    """Return whether a condition is as it should be; only ScalingLimited is when it is False."""
    limited = kind == ConditionType.SCALING_LIMITED
    return status is (ConditionStatus.FALSE if limited else ConditionStatus.TRUE)


class Condition(Value):
    """Condition of the service, as in metav1.Condition."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    status: Annotated[ConditionStatus, Field(strict=False)]
    reason: Annotated[str, Field(min_length=1, max_length=128)]
    """Machine-readable cause."""
    message: Annotated[str, Field(max_length=4096)] = ""
    """Explanation, with the next step if there is one."""
    observed_generation: Annotated[int, Field(ge=0)] = 0
    """Generation of the spec that the condition describes."""
    last_transition_time: (
        Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})] | None
    ) = None
    """Time of the last change of the status."""


Conditions = tuple[Condition, ...]


def reason_of(conditions: Conditions, decided: str | None) -> str | None:
    """Return the reason that matters most: why it does not serve, or cannot scale; else `decided`.

    A decision without metrics says so, although a replica that cannot start is why, or the time
    since the operator started.
    """
    by_kind = {one.type: one for one in conditions}
    for kind in (ConditionType.READY, ConditionType.ABLE_TO_SCALE):
        one = by_kind.get(kind)
        if one is not None and one.status is ConditionStatus.FALSE:
            return one.reason
    metrics = by_kind.get(ConditionType.METRICS_AVAILABLE)
    is_collecting = metrics is not None and metrics.reason == StatusReason.COLLECTING_METRICS
    if is_collecting and decided == StatusReason.METRICS_MISSING:
        return StatusReason.COLLECTING_METRICS
    return decided


def upsert(conditions: Conditions, new: Condition, now_s: float) -> Conditions:
    """Replace the condition of the same type by `new`, or append it.

    The transition time is kept while the status stays the same.
    """
    old = next((c for c in conditions if c.type == new.type), None)
    since = old.last_transition_time if old and old.status is new.status else None
    timed = new.model_copy(
        update={
            "last_transition_time": since or rfc3339(now_s),
            "message": shortened(new.message),
        }
    )
    if old is None:
        return (*conditions, timed)
    return tuple(timed if c.type == new.type else c for c in conditions)


def upsert_all(conditions: Conditions, new: Iterable[Condition], now_s: float) -> Conditions:
    """Upsert each of `new`."""
    for condition in new:
        conditions = upsert(conditions, condition, now_s)
    return conditions


def pending(generation: int, now_s: float) -> Conditions:
    """Return every condition of a new service: Unknown, because it is not evaluated yet."""
    return upsert_all(
        (),
        (
            Condition(
                type=kind,
                status=ConditionStatus.UNKNOWN,
                reason=StatusReason.PENDING,
                message="not evaluated yet; if this persists, run kubectl headroom doctor",
                observed_generation=generation,
            )
            for kind in ConditionType
        ),
        now_s,
    )


def read(status: Mapping[str, Any]) -> Conditions:
    """Read the conditions of a stored status; skip entries that are not valid."""
    stored = status.get("conditions")
    found: dict[str, Condition] = {}
    for entry in stored if isinstance(stored, list) else ():
        try:
            condition = Condition.model_validate(entry)
        except ValidationError:
            continue
        found.setdefault(condition.type, condition)
    return tuple(found.values())


def shortened(message: str, most: int = MAX_MESSAGE) -> str:
    """Cut a message to the maximum length in a status."""
    return message if len(message) <= most else f"{message[: most - 3]}..."
