"""A decision, its status, and the schema that the status must fit."""

from __future__ import annotations

import math
from typing import Any

from headroom.api.schema.crd import custom_resource_definition
from headroom.api.service_status import conditions, status_rendering
from headroom.scaling.values.decision import Counterfactual, Decision, Recommendation, ReplicaCounts
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.signals import Freshness, Signal, Signals

NOON_S = 1_800_000_000.0
SCHEMA = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
    "properties"
]["status"]

DECISION = Decision(
    time_s=NOON_S,
    current=2,
    replicas=3,
    direction=Direction.UP,
    reason=Reason.RATE_LIMITED,
    message="16.2 requests/s need 4 replicas; at most one more per minute",
    recommendations=(
        Recommendation(rule=Reason.LATENCY_MODEL, replicas=4, detail="p95 1.2 s"),
        Recommendation(rule=Reason.MIN_REPLICAS, replicas=1, detail="minReplicas"),
    ),
    counterfactuals=(
        Counterfactual(replicas=2, latency_s=math.inf, utilization=0.987654),
        Counterfactual(replicas=3, latency_s=0.812345, utilization=0.65),
    ),
    signals=Signals(
        arrival_rps=Signal(freshness=Freshness.FRESH, value=16.23456),
        waiting=Signal(freshness=Freshness.STALE, value=3.0),
        latency_s=Signal(freshness=Freshness.FRESH, value=math.inf),
    ),
    counts=ReplicaCounts(ready=2),
    utilization=0.7911,
    cost=CostModel(fixed_s=0.15, per_item_s=0.06, max_batch=4),
    cold_start_s=6.4321,
)


def build(**changes: Any) -> dict[str, Any]:
    given_: dict[str, Any] = {
        "generation": 3,
        "current": 2,
        "selector": "headroom.dev/inference-service=resnet50",
        "conditions": conditions.pending(3, NOON_S)[:1],
        "counts": ReplicaCounts(ready=1, warming=2, late=1, unschedulable=3, broken=4),
    }
    return status_rendering.build(**given_ | changes)


def saying(message: str) -> Decision:
    return Decision(
        time_s=NOON_S,
        current=1,
        replicas=1,
        direction=Direction.NONE,
        reason=Reason.WITHIN_TARGET,
        message=message,
    )
