"""What the replicas themselves say of why they do not serve."""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.controller.report.condition_result import TickResult
from headroom.resources.names import WARM_GATE
from headroom.scaling.values import PodState


def detail(tick: TickResult, state: PodState) -> str:
    """The first pod's own words; the others' are rarely different."""
    for one in tick.gathered.pods:
        if one.pod.state is state:
            return f"{one.name}: {one.pod.detail}"
    return ""


def why_broken(tick: TickResult) -> StatusReason:
    """Of the pod whose words are shown."""
    for one in tick.gathered.pods:
        if one.pod.state is PodState.BROKEN:
            if one.fetch is not None and one.fetch.failed:
                return StatusReason.MODEL_UNAVAILABLE
            break
    return StatusReason.REPLICAS_BROKEN


def gate(tick: TickResult) -> str:
    """What the first pod waits for that only the operator's requests keep from being ready."""
    waiting = (one for one in tick.gathered.pods if one.waits_for)
    return next((f"{one.name}: {one.waits_for}" for one in waiting), "")


def cold(tick: TickResult) -> str:
    """Say how many take requests without having been warmed, since their template has no gate."""
    pods = [one for one in tick.gathered.pods if one.pod.state is PodState.READY]
    cold = sum(not one.gated for one in pods) if tick.service.spec.warmup.by_operator else 0
    if not cold:
        return ""
    whose = "targetRef's template" if tick.service.spec.target_ref else "pods of an earlier rollout"
    return (
        f"{cold} of them lack the readiness gate {WARM_GATE} and are warmed by nobody ({whose}): "
        "add it to spec.readinessGates of the pods"
    )


def fetching(tick: TickResult) -> str:
    """Say how many replicas fetch their model, and for how long the first of them has."""
    now_s = tick.decision.time_s
    since_s = [
        one.fetch.since_s
        for one in tick.gathered.pods
        if one.fetch is not None and one.fetch.running and one.fetch.since_s is not None
    ]
    if not since_s:
        return ""
    return f"{len(since_s)} fetch their model, the first for {max(0.0, now_s - min(since_s)):.0f} s"


def replica_failure(tick: TickResult) -> str:
    """Quota and admission refuse pods before they exist; only the Deployment knows."""
    deployment = tick.gathered.deployment or {}
    for condition in deployment.get("status", {}).get("conditions") or ():
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
            return str(condition.get("message", condition.get("reason", "")))
    return ""
