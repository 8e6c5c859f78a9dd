"""Reads the demo's objects, as the API server returns them, into frozen views."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from demo.views import Counterfactual, DecisionView, PodView, ServiceView, WorkloadView
from headroom.api.durations import Duration
from headroom.api.service_status.status import Status
from headroom.api.service_status.status_durations import UNBOUNDED
from headroom.api.timestamps import epoch_s
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.tokens import Target, TokenTargets

Body = Mapping[str, Any]

FINISHED = ("Succeeded", "Failed")


def service(body: Body) -> ServiceView:
    """Read an InferenceService."""
    spec, status = body["spec"], body.get("status", {})
    latency, scaling = spec["slo"]["latency"], spec["scaling"]
    conditions, read = status.get("conditions", ()), Status.read(status)
    return ServiceView(
        target_s=seconds(latency["target"]),
        percentile=latency["percentile"],
        utilization_ceiling=float(spec["slo"]["utilizationCeiling"]),
        queue_depth=spec["slo"].get("queueDepth"),
        min_replicas=scaling["minReplicas"],
        max_replicas=scaling["maxReplicas"],
        ready=status.get("readyReplicas", 0),
        warming=status.get("warmingReplicas", 0),
        unschedulable=status.get("unschedulableReplicas", 0),
        broken=status.get("brokenReplicas", 0),
        decision=_decision(status["decision"]) if "decision" in status else None,
        cost=_cost(status["model"]) if "model" in status else None,
        demand=read.demand,
        generation=read.generation,
        tokens=TokenTargets(
            first_token=_target(spec["slo"].get("timeToFirstToken")),
            output_token=_target(spec["slo"].get("timePerOutputToken")),
        ),
        conditions={each["type"]: each["status"] for each in conditions},
        messages={
            each["type"]: f"{each.get('reason', '')}: {each.get('message', '')}"
            for each in conditions
        },
    )


def workload(body: Body) -> WorkloadView:
    """Read a Deployment, with its managedFields."""
    entries = body["metadata"].get("managedFields", ())
    return WorkloadView(
        replicas=body["spec"]["replicas"],
        writers=frozenset(
            entry["manager"]
            for entry in entries
            if "f:replicas" in entry.get("fieldsV1", {}).get("f:spec", {})
        ),
    )


def pod(body: Body, gpu_resource: str) -> PodView:
    """Read a pod."""
    metadata, status = body["metadata"], body.get("status", {})
    conditions = {each["type"]: each for each in status.get("conditions", ())}
    ready = conditions.get("Ready", {})
    return PodView(
        uid=metadata["uid"],
        name=metadata["name"],
        created_s=epoch_s(metadata["creationTimestamp"]),
        scheduled=conditions.get("PodScheduled", {}).get("status") == "True",
        ready_s=epoch_s(ready["lastTransitionTime"]) if ready.get("status") == "True" else None,
        leaving="deletionTimestamp" in metadata,
        finished=status.get("phase") in FINISHED,
        gpus=sum(
            int(container.get("resources", {}).get("limits", {}).get(gpu_resource, 0))
            for container in body["spec"]["containers"]
        ),
    )


def restarts(body: Body) -> int:
    """Restarts of a pod's containers."""
    statuses = body.get("status", {}).get("containerStatuses", ())
    return sum(each["restartCount"] for each in statuses)


def seconds(text: str) -> float:
    """Read a duration of spec or status; `unbounded` is infinite."""
    return math.inf if text == UNBOUNDED else Duration.parse(text).seconds


def _decision(body: Body) -> DecisionView:
    return DecisionView(
        replicas=body["replicas"],
        current=body["current"],
        direction=body["direction"],
        reason=body["reason"],
        message=body["message"],
        time_s=epoch_s(body["time"]),
        counterfactuals=tuple(
            Counterfactual(
                replicas=each["replicas"],
                latency_s=seconds(each["latency"]),
                utilization=each.get("utilization"),
            )
            for each in body.get("counterfactuals", ())
        ),
    )


def _target(body: Body | None) -> Target | None:
    if body is None:
        return None
    return Target(percentile=body["percentile"] / 100, seconds=seconds(body["target"]))


def _cost(body: Body) -> CostModel:
    return CostModel(
        fixed_s=seconds(body["fixedCost"]),
        per_item_s=seconds(body["perItemCost"]),
        max_batch=body["maxBatch"],
    )
