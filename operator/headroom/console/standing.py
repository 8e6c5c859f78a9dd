"""How a service stands, read from the object as it is stored: its promise, its state, its cost.

Pure. What the object does not say is None, never zero. An object that another version wrote, or
nobody yet, is read as far as it goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headroom.api.conditions import Condition, Conditions, ConditionStatus, ConditionType, read

Manifest = Mapping[str, Any]

_TRUE, _FALSE, _UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


class State(StrEnum):
    """One word for a service, from the worst to the best."""

    BLOCKED = "Blocked"
    """Somebody has to act: the spec is invalid, or the API server refuses what follows from it."""
    DOWN = "Down"
    """Fewer than minReplicas take requests, and nothing is on its way."""
    MISSED = "Missed"
    """The percentile is above its target."""
    SHORT = "Short"
    """Replicas have no node, or are broken."""
    BLIND = "Blind"
    """Signals are missing: what stands is held."""
    INFEASIBLE = "Infeasible"
    """Even an idle replica is slower than the target."""
    STARTING = "Starting"
    """Fewer than minReplicas are warm, and others are on their way."""
    UNKNOWN = "Unknown"
    """Nothing is known yet."""
    IDLE = "Idle"
    """No request ended in the window, so there is nothing to keep."""
    KEPT = "Kept"
    """The percentile is below its target."""

    @property
    def needs_attention(self) -> bool:
        """Whether somebody should look at it."""
        return self not in (State.STARTING, State.UNKNOWN, State.IDLE, State.KEPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One step of the ladder: a condition with this status, for one of these reasons, is a state.

    No reasons: any.
    """

    state: State
    kind: ConditionType
    status: ConditionStatus
    reasons: frozenset[str] = frozenset()
    but_not: frozenset[str] = frozenset()

    def matches(self, condition: Condition) -> bool:
        """Whether the condition stands on this rung."""
        return (
            condition.type == self.kind
            and condition.status is self.status
            and (not self.reasons or condition.reason in self.reasons)
            and condition.reason not in self.but_not
        )


_QUIET = frozenset({"NoReadyReplicas", "Pending", "CollectingMetrics"})
LADDER = (
    Rung(
        state=State.BLOCKED,
        kind=ConditionType.READY,
        status=_FALSE,
        reasons=frozenset({"InvalidSpec", "ApplyFailed"}),
    ),
    Rung(state=State.BLOCKED, kind=ConditionType.ABLE_TO_SCALE, status=_FALSE),
    Rung(
        state=State.BLOCKED,
        kind=ConditionType.SCALING_ACTIVE,
        status=_UNKNOWN,
        reasons=frozenset({"EvaluationFailed"}),
    ),
    Rung(
        state=State.STARTING,
        kind=ConditionType.READY,
        status=_FALSE,
        reasons=frozenset({"WarmingUp"}),
    ),
    Rung(state=State.DOWN, kind=ConditionType.READY, status=_FALSE),
    Rung(state=State.MISSED, kind=ConditionType.SLO_MET, status=_FALSE),
    Rung(state=State.SHORT, kind=ConditionType.CAPACITY_AVAILABLE, status=_FALSE),
    Rung(state=State.BLIND, kind=ConditionType.METRICS_AVAILABLE, status=_FALSE, but_not=_QUIET),
    Rung(state=State.INFEASIBLE, kind=ConditionType.SLO_FEASIBLE, status=_FALSE),
    Rung(
        state=State.IDLE,
        kind=ConditionType.SLO_MET,
        status=_UNKNOWN,
        reasons=frozenset({"NoTraffic"}),
    ),
    Rung(state=State.KEPT, kind=ConditionType.SLO_MET, status=_TRUE),
)
"""The first rung that a condition matches says the state, and the condition why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One service at a glance."""

    namespace: str
    name: str
    uid: str
    state: State
    why: str
    """The condition behind the state: its reason and message."""
    percentile: int | None
    target: str | None
    measured: str | None
    """The promised percentile; `unbounded` where too many requests missed."""
    arrivals_rps: float | None
    waiting: float | None
    utilization: float | None
    ceiling: float | None
    freshness: str | None
    current: int
    """Replicas that the workload is asked for."""
    ready: int
    desired: int | None
    """Replicas of the last decision."""
    coming: Mapping[str, int]
    """Replicas that are not ready, by why."""
    least: int | None
    most: int | None
    mode: str | None
    accelerator: str
    accelerators: int
    """Held by the replicas that are asked for."""
    reason: str | None
    message: str | None
    decided: str | None
    """When, as RFC 3339."""
    conditions: Conditions


def standing(service: Manifest) -> Standing:
    """Read one object as the API server gives it."""
    metadata, spec, status = service["metadata"], _of(service, "spec"), _of(service, "status")
    slo, scaling, accelerator = _of(spec, "slo"), _of(spec, "scaling"), _of(spec, "accelerator")
    latency, signals, decision = (
        _of(slo, "latency"),
        _of(status, "signals"),
        _of(status, "decision"),
    )
    conditions = read(status)
    state, why = state_of(conditions)
    current = int(status.get("replicas") or 0)
    return Standing(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        state=state,
        why=why,
        percentile=latency.get("percentile"),
        target=latency.get("target"),
        measured=signals.get("latency"),
        arrivals_rps=signals.get("arrivalsPerSecond"),
        waiting=signals.get("waiting"),
        utilization=signals.get("utilization"),
        ceiling=slo.get("utilizationCeiling"),
        freshness=signals.get("freshness"),
        current=current,
        ready=int(status.get("readyReplicas") or 0),
        desired=decision.get("replicas"),
        coming={word: status[key] for key, word in _COMING.items() if status.get(key)},
        least=scaling.get("minReplicas"),
        most=scaling.get("maxReplicas"),
        mode=scaling.get("mode"),
        accelerator=accelerator.get("resource", ""),
        accelerators=current * int(accelerator.get("count") or 0),
        reason=decision.get("reason"),
        message=decision.get("message"),
        decided=decision.get("time"),
        conditions=conditions,
    )


_COMING = {
    "warmingReplicas": "warming",
    "unschedulableReplicas": "unschedulable",
    "brokenReplicas": "broken",
}


def state_of(conditions: Conditions) -> tuple[State, str]:
    """Give the state, and why."""
    for rung in LADDER:
        for condition in conditions:
            if rung.matches(condition):
                return rung.state, f"{condition.reason}: {condition.message}"
    return State.UNKNOWN, "the operator has not said anything about this service yet"


def troubled(conditions: Iterable[Condition]) -> list[Condition]:
    """Keep what asks for attention; ScalingLimited is the one that is bad when it is true."""
    return [
        one
        for one in conditions
        if one.status is not (_FALSE if one.type == ConditionType.SCALING_LIMITED else _TRUE)
    ]


def by_attention(rows: Iterable[Standing]) -> list[Standing]:
    """Sort the worst to the front, then by name."""
    order = list(State)
    return sorted(rows, key=lambda row: (order.index(row.state), row.namespace, row.name))


def _of(parent: Manifest, key: str) -> Manifest:
    found = parent.get(key)
    return found if isinstance(found, Mapping) else {}
