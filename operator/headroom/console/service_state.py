"""One state of a service, from its conditions: the worst that one of them says. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import (
    Condition,
    Conditions,
    ConditionStatus,
    ConditionType,
    is_good,
)

_TRUE, _FALSE, _UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


class State(StrEnum):
    """The state of a service, by what a user must act on first."""

    DOWN = "Down"
    """Fewer than minReplicas take requests, and none is starting."""
    BLOCKED = "Blocked"
    """The spec is invalid, or the API server refuses a write: a user has to act."""
    ABOVE_TARGET = StatusReason.ABOVE_TARGET.value
    """The percentile is above its target."""
    BROKEN = "Broken"
    """Replicas cannot start: image, model, crash."""
    NO_CAPACITY = "NoCapacity"
    """Replicas have no node, or may not be created."""
    NO_METRICS = "NoMetrics"
    """Metrics are missing: the number of replicas is kept."""
    SLO_INFEASIBLE = StatusReason.SLO_INFEASIBLE.value
    """Even an idle replica is slower than the target."""
    WARMING_UP = StatusReason.WARMING_UP.value
    """Fewer than minReplicas are warm, and more are starting."""
    PENDING = StatusReason.PENDING.value
    """The operator has not reported yet."""
    NO_TRAFFIC = StatusReason.NO_TRAFFIC.value
    """No request ended in the window."""
    HEALTHY = "Healthy"
    """The percentile is below its target."""

    @property
    def needs_attention(self) -> bool:
        """Return whether a user should look at it."""
        return self not in (State.WARMING_UP, State.PENDING, State.NO_TRAFFIC, State.HEALTHY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the ladder: a condition with this status and one of these reasons means a state.

    No reasons: any.
    """

    state: State
    kind: ConditionType
    status: ConditionStatus
    reasons: frozenset[str] = frozenset()
    but_not: frozenset[str] = frozenset()

    def matches(self, condition: Condition) -> bool:
        """Return whether the condition means this state."""
        return (
            condition.type == self.kind
            and condition.status is self.status
            and (not self.reasons or condition.reason in self.reasons)
            and condition.reason not in self.but_not
        )


_BENIGN = frozenset(
    {StatusReason.NO_READY_REPLICAS, StatusReason.PENDING, StatusReason.COLLECTING_METRICS}
)
LADDER = (
    Step(
        state=State.BLOCKED,
        kind=ConditionType.READY,
        status=_FALSE,
        reasons=frozenset(
            {
                StatusReason.INVALID_SPEC,
                StatusReason.APPLY_FAILED,
                StatusReason.DEPLOYMENT_REPEATEDLY_OVERWRITTEN,
            }
        ),
    ),
    Step(state=State.BLOCKED, kind=ConditionType.ABLE_TO_SCALE, status=_FALSE),
    Step(
        state=State.BLOCKED,
        kind=ConditionType.SCALING_ACTIVE,
        status=_UNKNOWN,
        reasons=frozenset({StatusReason.EVALUATION_FAILED}),
    ),
    Step(
        state=State.WARMING_UP,
        kind=ConditionType.READY,
        status=_FALSE,
        reasons=frozenset({StatusReason.WARMING_UP}),
    ),
    Step(state=State.DOWN, kind=ConditionType.READY, status=_FALSE),
    Step(state=State.ABOVE_TARGET, kind=ConditionType.SLO_MET, status=_FALSE),
    Step(
        state=State.BROKEN,
        kind=ConditionType.CAPACITY_AVAILABLE,
        status=_FALSE,
        reasons=frozenset({StatusReason.REPLICAS_BROKEN, StatusReason.MODEL_UNAVAILABLE}),
    ),
    Step(state=State.NO_CAPACITY, kind=ConditionType.CAPACITY_AVAILABLE, status=_FALSE),
    Step(
        state=State.NO_METRICS,
        kind=ConditionType.METRICS_AVAILABLE,
        status=_FALSE,
        but_not=_BENIGN,
    ),
    Step(state=State.SLO_INFEASIBLE, kind=ConditionType.SLO_FEASIBLE, status=_FALSE),
    Step(
        state=State.NO_TRAFFIC,
        kind=ConditionType.SLO_MET,
        status=_UNKNOWN,
        reasons=frozenset({StatusReason.NO_TRAFFIC}),
    ),
    Step(state=State.HEALTHY, kind=ConditionType.SLO_MET, status=_TRUE),
)
"""The first step that a condition matches gives the state, and the condition says why."""


def state_of(conditions: Conditions) -> tuple[State, str]:
    """Return the state, and the condition that says why."""
    for step in LADDER:
        for condition in conditions:
            if step.matches(condition):
                return step.state, f"{condition.reason}: {condition.message}"
    return State.PENDING, "the operator has not reported on this service yet"


def needing_attention(conditions: Iterable[Condition]) -> list[Condition]:
    """Return the conditions that are not as they should be."""
    return [one for one in conditions if not is_good(one.type, one.status)]
