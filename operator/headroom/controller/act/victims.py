"""Mark the pods that a scale-down should remove first, for the ReplicaSet that removes them.

A ReplicaSet removes pods without a node first, then those that are not ready, then those with the
lowest `controller.kubernetes.io/pod-deletion-cost`, then the youngest. So a mark decides among
ready pods, by their load, and among pods that are not ready, where broken ones go before warming
ones. Marks are best effort: without them the ReplicaSet's own order applies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headroom.api import InferenceService
from headroom.controller.act.state import ActState
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.gather.pods.pods import MarkedBy, ObservedPod
from headroom.controller.ports import Cluster, Manifest
from headroom.errors import ClusterError, Forbidden
from headroom.resources.names import DELETION_COST, REMOVED_FIRST, VICTIM_FIELD_MANAGER
from headroom.scaling.values.observation import PodSample, PodState

COST_OF_A_VICTIM = "-1000"
MOST_MARKED = 20
"""Maximum number of marks per scale-down, because each is a write."""
MARKED_WITHIN_S = 2.0
"""Longest time that a scale-down waits for its marks."""
FORBIDDEN_AGAIN_AFTER_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """A pod to remove before others."""

    pod: ObservedPod
    why: str


def victims(
    pods: Sequence[ObservedPod], samples: Sequence[PodSample], removed: int
) -> tuple[Victim, ...]:
    """Choose the pods that a scale-down by this many removes, if marks change the choice. Pure.

    None if another client has set costs, or if all ready pods have the same load.
    """
    staying = [one for one in pods if one.in_replica_set and _stays(one)]
    if any(one.marked_by is MarkedBy.OTHERS for one in staying):
        return ()
    idle = [one for one in staying if one.pod.state is not PodState.READY]
    broken = [one for one in idle if one.pod.state is PodState.BROKEN]
    if removed < len(idle):
        named = broken[:removed] if len(broken) < len(idle) else []
        chosen = [Victim(pod=one, why=f"broken: {one.pod.detail}"[:200]) for one in named]
    else:
        serving = [one for one in staying if one.pod.state is PodState.READY]
        chosen = _least_loaded(serving, samples, removed - len(idle))
    return tuple(chosen[:MOST_MARKED])


def _least_loaded(
    serving: Sequence[ObservedPod], samples: Sequence[PodSample], removed: int
) -> list[Victim]:
    """Order by requests in flight, then the youngest; without a sample a pod may be busy."""
    in_flight = {one.pod: one.waiting + one.running for one in samples}
    loads = [in_flight.get(one.pod.uid) for one in serving]
    if removed <= 0 or removed >= len(serving) or len(set(loads)) < 2:
        return []

    def order(one: ObservedPod) -> tuple[bool, int, float]:
        load = in_flight.get(one.pod.uid)
        return load is None, load or 0, -(one.pod.ready_s or 0.0)

    known = [one for one in sorted(serving, key=order) if one.pod.uid in in_flight]
    return [
        Victim(pod=one, why=f"least loaded: {in_flight[one.pod.uid]} requests in flight")
        for one in known[:removed]
    ]


async def mark(
    cluster: Cluster,
    service: InferenceService,
    state: ActState,
    gathered: Gathered,
    replicas: int,
    now_s: float,
) -> str:
    """Mark the pods in excess of `replicas`, and no other; return the rejection as text.

    Where nothing is to be removed, the operator's marks are removed.
    """
    staying = [one for one in gathered.pods if _stays(one)]
    chosen: Mapping[str, Victim] = {}
    if replicas < gathered.observation.current:
        removed = len(staying) - replicas
        found = victims(staying, gathered.observation.samples, removed)
        chosen = {one.pod.pod.uid: one for one in found}
    elif len(staying) > replicas:
        return ""  # an earlier removal is under way
    outdated = [
        one for one in staying if one.marked_by is MarkedBy.US and one.pod.uid not in chosen
    ]
    missing = [one for one in chosen.values() if one.pod.marked_by is MarkedBy.NONE]
    writes = [_manifest(service, one.pod, one.why) for one in missing]
    writes += [_manifest(service, one, "") for one in outdated[:MOST_MARKED]]
    if not writes or now_s < state.marks_again_s:
        return ""
    return await _write(cluster, state, writes, now_s)


async def _write(
    cluster: Cluster, state: ActState, writes: Sequence[Manifest], now_s: float
) -> str:
    """Apply all at once; return the first refusal."""
    try:
        async with asyncio.timeout(MARKED_WITHIN_S):
            answers = await asyncio.gather(
                *(cluster.apply(one, field_manager=VICTIM_FIELD_MANAGER) for one in writes),
                return_exceptions=True,
            )
    except TimeoutError:
        return f"not answered within {MARKED_WITHIN_S:g} s"
    refusal = ""
    for answer in answers:
        if isinstance(answer, Forbidden):
            state.marks_again_s = now_s + FORBIDDEN_AGAIN_AFTER_S
        if isinstance(answer, ClusterError):
            refusal = refusal or str(answer)
        elif isinstance(answer, BaseException):
            raise answer
    return refusal


def _manifest(service: InferenceService, one: ObservedPod, why: str) -> Manifest:
    """Return the applied fields: the mark, or none, which removes the operator's mark.

    The UID keeps it from another pod of the name.
    """
    metadata: Manifest = {"name": one.name, "namespace": service.namespace, "uid": one.pod.uid}
    if why:
        metadata["annotations"] = {DELETION_COST: COST_OF_A_VICTIM, REMOVED_FIRST: why}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def _stays(one: ObservedPod) -> bool:
    return one.pod.state is not PodState.TERMINATING
