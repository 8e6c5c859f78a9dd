"""Conditions: what is true of a service now, each with a machine-readable reason.

Types and reasons are API: they are documented here, and never renamed. A condition is there from
first sight, Unknown until something is known. `lastTransitionTime` moves only with the status, so
that it says how long something has been so.
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
    """What is said about every service."""

    READY = "Ready"
    """At least minReplicas are warm and take requests."""
    SCALING_ACTIVE = "ScalingActive"
    """Decisions are made from signals and written."""
    ABLE_TO_SCALE = "AbleToScale"
    """The last write of replicas was accepted, or none was needed."""
    SCALING_LIMITED = "ScalingLimited"
    """A bound or a rate holds the number back from what is wanted."""
    METRICS_AVAILABLE = "MetricsAvailable"
    """The signals that a removal depends on are fresh."""
    SLO_MET = "SLOMet"
    """The promised percentile is below its target in the stable window."""
    SLO_FEASIBLE = "SLOFeasible"
    """An idle replica can meet the target."""
    CAPACITY_AVAILABLE = "CapacityAvailable"
    """No replica lacks a node, and none is broken."""
    ROUTING_READY = "RoutingReady"
    """Requests reach the replicas as routing.mode says, and somebody holds them where there may be
    none."""


class ConditionStatus(StrEnum):
    """The three values of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Value):
    """One statement about the service."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    status: Annotated[ConditionStatus, Field(strict=False)]
    reason: Annotated[str, Field(min_length=1, max_length=128)]
    """Machine-readable cause."""
    message: Annotated[str, Field(max_length=4096)] = ""
    """The same for people."""
    observed_generation: Annotated[int, Field(ge=0)] = 0
    """Generation of the spec that this was found for."""
    last_transition_time: (
        Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})] | None
    ) = None
    """When the status last changed."""


Conditions = tuple[Condition, ...]


def upsert(conditions: Conditions, new: Condition, now_s: float) -> Conditions:
    """Put `new` in the place of the condition of its type, or at the end.

    Its time of transition stays that of the condition it replaces while the status is the same.
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
    """Put each of `new` in its place."""
    for condition in new:
        conditions = upsert(conditions, condition, now_s)
    return conditions


def pending(generation: int, now_s: float) -> Conditions:
    """Give every condition at first sight of a service: Unknown, because nothing is known yet."""
    return upsert_all(
        (),
        (
            Condition(
                type=kind,
                status=ConditionStatus.UNKNOWN,
                reason=StatusReason.PENDING,
                message="nothing is known yet; if it stays so, see kubectl headroom doctor",
                observed_generation=generation,
            )
            for kind in ConditionType
        ),
        now_s,
    )


def read(status: Mapping[str, Any]) -> Conditions:
    """Read the conditions of a stored status; what is not a condition of ours is left out."""
    stored = status.get("conditions")
    found: dict[str, Condition] = {}
    for entry in stored if isinstance(stored, list) else ():
        try:
            condition = Condition.model_validate(entry)
        except ValidationError:
            continue
        found.setdefault(condition.type, condition)
    return tuple(found.values())


def shortened(message: str) -> str:
    """Cut a message to what a status carries."""
    return message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 3]}..."
