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


class ConditionReason(StrEnum):
    """Why a condition has its status."""

    PENDING = "Pending"
    """Any: nothing is known yet."""
    EVALUATION_FAILED = "EvaluationFailed"
    """ScalingActive: the last evaluation broke off; what stands is held until one succeeds."""
    INVALID_SPEC = "InvalidSpec"
    """Ready, ScalingActive: the spec breaks a rule; everything is held as it stands."""

    SERVING = "Serving"
    """Ready: at least minReplicas are warm."""
    AT_ZERO = "AtZero"
    """Ready, ScalingActive, MetricsAvailable, SLOMet: no replica is wanted; the first request wakes
    one, and is held until it is warm."""
    WARMING_UP = "WarmingUp"
    """Ready: fewer than minReplicas are warm, and others are on their way."""
    NO_READY_REPLICAS = "NoReadyReplicas"
    """Ready, MetricsAvailable, SLOMet: nothing takes requests."""
    REPLICAS_BROKEN = "ReplicasBroken"
    """Ready, CapacityAvailable: replicas cannot get ready as they are: image, crash loop, warm-up
    timed out."""
    MODEL_UNAVAILABLE = "ModelUnavailable"
    """Ready, CapacityAvailable: what model.uri names could not be fetched, or has another digest.
    """
    REPLICAS_UNSCHEDULABLE = "ReplicasUnschedulable"
    """Ready, CapacityAvailable: no node has room for replicas."""
    REPLICAS_REFUSED = "ReplicasRefused"
    """Ready, CapacityAvailable: a quota or an admission policy refuses the pods."""
    TARGET_NOT_FOUND = "TargetNotFound"
    """Ready, ScalingActive, AbleToScale: what targetRef names is not there."""
    TARGET_FORBIDDEN = "TargetForbidden"
    """Ready, ScalingActive, AbleToScale: the operator may not read what targetRef names."""
    TARGET_NOT_SCALABLE = "TargetNotScalable"
    """Ready, ScalingActive, AbleToScale: what targetRef names cannot be scaled or says no
    selector."""
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    """Ready: the namespace is being deleted, and takes nothing new."""
    APPLY_FAILED = "ApplyFailed"
    """Ready: the API server refused a child."""

    AUTO = "Auto"
    """ScalingActive: decisions are made and written."""
    RECOMMEND_ONLY = "RecommendOnly"
    """ScalingActive: decisions are made, and not written, because scaling.mode is Recommend."""
    FOLLOWING_REPLICAS = "FollowingReplicas"
    """ScalingActive: decisions are advice, and spec.replicas is followed, because scaling.mode is
    External."""
    TARGET_TAKEN = "TargetTaken"
    """ScalingActive, AbleToScale: another InferenceService scales the same workload."""
    CONFLICTING_AUTOSCALER = "ConflictingAutoscaler"
    """ScalingActive, AbleToScale: a HorizontalPodAutoscaler scales the same workload."""
    SCALED_TO_ZERO = "ScaledToZero"
    """ScalingActive, AbleToScale: somebody scaled the workload to zero, which switches scaling
    off."""
    REPLICAS_CONTESTED = "ReplicasContested"
    """ScalingActive, AbleToScale: somebody keeps changing the replicas that were written; none are
    written for a while."""
    SIGNALS_FRESH = "SignalsFresh"
    """MetricsAvailable: every signal is recent."""
    SIGNALS_STALE = "SignalsStale"
    """MetricsAvailable: a signal is out of date; nothing is removed."""
    WINDOW_FILLING = "WindowFilling"
    """MetricsAvailable, ScalingActive, SLOMet: replicas answer, and were not watched for long
    enough to tell a rate; after a start of the operator, or of the first replica."""
    SIGNALS_ABSENT = "SignalsAbsent"
    """MetricsAvailable, ScalingActive, SLOMet: a signal is not there; what stands is held."""

    SCALED = "Scaled"
    """AbleToScale: the last write of replicas was accepted."""
    REPLICAS_OVERRIDDEN = "ReplicasOverridden"
    """AbleToScale: somebody changed the replicas that were written, and theirs stand."""
    WORKLOAD_PAUSED = "WorkloadPaused"
    """AbleToScale: the workload is paused, so that changes of its template reach no pod."""
    ROLLING_OUT = "RollingOut"
    """AbleToScale: a rollout replaces pods; none is removed before it ends."""
    NOTHING_TO_SCALE = "NothingToScale"
    """AbleToScale: what stands is what was decided."""
    SCALE_FAILED = "ScaleFailed"
    """AbleToScale: the API server refused the replicas."""

    WITHIN_BOUNDS = "WithinBounds"
    """ScalingLimited: nothing holds the number back."""
    AT_MAX_REPLICAS = "AtMaxReplicas"
    """ScalingLimited: more is wanted than maxReplicas."""
    OPERATOR_LIMIT = "OperatorLimit"
    """ScalingLimited, Ready, ScalingActive: the operator's settings allow no more replicas of a
    service, or no more accelerators in all."""
    RATE_LIMITED = "RateLimited"
    """ScalingLimited: a rate cut the step."""
    CAPACITY_SHORTAGE = "CapacityShortage"
    """ScalingLimited: what was asked for has no node or is broken; no more is asked for."""
    YIELDED_TO_PRIORITY = "YieldedToPriority"
    """ScalingLimited: a service of higher priority gets the last accelerators."""

    WITHIN_TARGET = "WithinTarget"
    """SLOMet: the promised percentile is below its target."""
    NO_TRAFFIC = "NoTraffic"
    """SLOMet: no request ended in the stable window, so there is no latency."""
    LATENCY_NOT_MEASURED = "LatencyNotMeasured"
    """SLOMet: the server has no latency histogram, so the promise is kept by the model alone."""
    ABOVE_TARGET = "AboveTarget"
    """SLOMet: the promised percentile is above its target."""

    FEASIBLE = "Feasible"
    """SLOFeasible: an idle replica meets the target."""
    TARGET_BELOW_FLOOR = "TargetBelowFloor"
    """SLOFeasible: even an idle replica takes longer than the target; more replicas cannot help."""
    COST_UNKNOWN = "CostUnknown"
    """SLOFeasible: no replica has said yet what a batch costs."""

    CAPACITY_FOUND = "CapacityFound"
    """CapacityAvailable: every replica has a node."""

    TO_REPLICAS = "ToReplicas"
    """RoutingReady: connections lead to the replicas, because routing.mode is Service."""
    THROUGH_GATEWAY = "ThroughGateway"
    """RoutingReady: requests lead through a gateway."""
    NO_GATEWAY = "NoGateway"
    """RoutingReady: routing.mode is Gateway, and no gateway takes connections for the service;
    connections lead to the replicas."""
    NO_ACTIVATOR = "NoActivator"
    """RoutingReady: nobody holds requests while no replica is warm; the last replica stays."""
    ROUTING_NOT_WRITTEN = "RoutingNotWritten"
    """RoutingReady: the API server refused the Service or its EndpointSlice."""


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
                reason=ConditionReason.PENDING,
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
