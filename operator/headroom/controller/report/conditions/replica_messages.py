"""Messages about replicas that do not serve, from their pods and the workload."""

from __future__ import annotations

from headroom.api.reasons import StatusReason
from headroom.api.service_status.status_durations import duration_text
from headroom.controller.report.conditions.condition_result import TickResult, join
from headroom.resources.names import WARM_GATE
from headroom.resources.object_conditions import condition
from headroom.scaling.values.observation import PodState


def detail(tick: TickResult, state: PodState) -> str:
    """Return the first such pod's detail; those of others rarely differ."""
    for one in tick.gathered.pods:
        if one.pod.state is state:
            return f"{one.name}: {one.pod.detail}"
    return ""


def unplaced(tick: TickResult) -> str:
    """Return why replicas have no node: what took it, and the scheduler's words."""
    victim = tick.gathered.preempted
    taken = f"{victim} was preempted by a pod of higher priority" if victim else ""
    return join(taken, detail(tick, PodState.UNSCHEDULABLE))


def why_broken(tick: TickResult) -> StatusReason:
    """Return the reason for the pod whose detail is shown."""
    for one in tick.gathered.pods:
        if one.pod.state is PodState.BROKEN:
            if one.fetch is not None and one.fetch.failed:
                return StatusReason.MODEL_UNAVAILABLE
            break
    return StatusReason.REPLICAS_BROKEN


def gate(tick: TickResult) -> str:
    """Return why the first pod that only needs its warm-up is not ready."""
    waiting = (one for one in tick.gathered.pods if one.waits_for)
    return next((f"{one.name}: {one.waits_for}" for one in waiting), "")


def cold(tick: TickResult) -> str:
    """Return how many replicas serve without a warm-up, because their template lacks the gate."""
    pods = [one for one in tick.gathered.pods if one.pod.state is PodState.READY]
    cold = sum(not one.gated for one in pods) if tick.service.spec.warmup.by_operator else 0
    if not cold:
        return ""
    whose = "targetRef's template" if tick.service.spec.target_ref else "pods of an earlier rollout"
    return (
        f"{cold} of them lack the readiness gate {WARM_GATE} and get no warm-up ({whose}): "
        "add it to spec.readinessGates of the pods"
    )


def starting(tick: TickResult) -> str:
    """Return the wait of the first pod whose containers start slowly, and the usual start time.

    Empty where it downloads its model.
    """
    for one in tick.gathered.pods:
        slow = one.pod.state is PodState.WARMING and one.waits_for is None and one.pod.detail
        if slow and not (one.fetch is not None and one.fetch.running):
            return join(f"{one.name}: {one.pod.detail}", _usual_start(tick))
    return ""


def _usual_start(tick: TickResult) -> str:
    """Return how long replicas of this service take to start, and may take."""
    measured_s, limit = tick.decision.cold_start_s, tick.service.spec.warmup.timeout
    if measured_s is None:
        return f"no start has been measured yet, and one may take {limit} (warmup.timeout)"
    usual = duration_text(measured_s)
    return f"a start usually takes {usual} (p90), and may take {limit} (warmup.timeout)"


def fetching(tick: TickResult) -> str:
    """Return how many replicas download their model, and since when the first of them does."""
    now_s = tick.decision.time_s
    since_s = [
        one.fetch.since_s
        for one in tick.gathered.pods
        if one.fetch is not None and one.fetch.running and one.fetch.since_s is not None
    ]
    if not since_s:
        return ""
    return (
        f"{len(since_s)} download their model, the first for {max(0.0, now_s - min(since_s)):.0f} s"
    )


def replica_failure(tick: TickResult) -> str:
    """Return why a quota or admission policy rejects pods; only the Deployment reports it."""
    failure = condition(tick.gathered.deployment or {}, "ReplicaFailure")
    if failure.get("status") != "True":
        return ""
    return str(failure.get("message", failure.get("reason", "")))


def rollout(tick: TickResult) -> str:
    """Return the progress of a rollout, and the cause of a stuck one."""
    status = (tick.gathered.deployment or {}).get("status") or {}
    updated, replicas = status.get("updatedReplicas", 0), status.get("replicas", 0)
    far = f": {updated} of {replicas} have the latest template" if replicas else ""
    said = f"a rollout is replacing pods{far}; no replica is removed until it ends"
    return join(said, _waits(tick), tick.rollout)


def _waits(tick: TickResult) -> str:
    """Say why a rollout does not go on, and how it ends; empty while it does."""
    counts = tick.decision.counts
    if counts.broken:
        name, namespace = tick.service.name, tick.service.namespace
        return (
            f"a pod cannot start, see CapacityAvailable: {counts.ready} ready replicas serve on; "
            f"correct the spec (kubectl edit hisvc {name} --namespace {namespace}) or apply the "
            "earlier one, and it goes on"
        )
    stuck = counts.unschedulable or replica_failure(tick)
    return "a new pod cannot start, see CapacityAvailable" if stuck else ""
