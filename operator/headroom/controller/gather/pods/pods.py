"""Raw pods → those that count as replicas, with the facts that a tick needs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headroom.api.timestamps import epoch_s
from headroom.controller.gather.pods.container_faults import running_since_s
from headroom.controller.gather.pods.model_download import ModelDownload, download_of
from headroom.controller.gather.pods.pod_state import is_finished, is_terminating, state_of
from headroom.controller.warmup import gate
from headroom.resources.names import DELETION_COST, REMOVED_FIRST
from headroom.resources.object_conditions import condition, reason_and_message, since_s
from headroom.resources.server_port import declared_port
from headroom.scaling.values.observation import Pod, PodState

HELD_AFTER_S = 60.0
"""Beyond the grace period: a kubelet that is slow to clean up takes some seconds."""

_PREEMPTION = "PreemptionByScheduler"
"""Reason of DisruptionTarget on a pod that makes room for one of higher priority."""
_RawPod = Mapping[str, Any]


class MarkedBy(StrEnum):
    """Client that set the cost by which a ReplicaSet chooses the pod to remove."""

    NONE = "None"
    US = "Us"
    OTHERS = "Others"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPod:
    """A pod, and where it can be scraped."""

    pod: Pod
    name: str
    ip: str
    port: int | None = None
    """Port that its model server declares."""
    arguments: tuple[str, ...] = ()
    """Commands and arguments of its containers."""
    running_s: float | None = None
    """Time since which all of its containers run; None while one does not."""
    on_host_network: bool = False
    in_replica_set: bool = False
    marked_by: MarkedBy = MarkedBy.NONE
    gated: bool = False
    """Whether it becomes ready only when the operator has warmed it."""
    waits_for: gate.GateReason | None = None
    """Reason why the gate is closed, if nothing else is missing."""
    fetch: ModelDownload | None = None
    """The download of its model; None where it has none."""
    held: bool = False
    """Whether it should have ended."""


def observe(
    raw: Sequence[_RawPod], *, now_s: float, warmup_timeout_s: float, replicas: int
) -> tuple[ObservedPod, ...]:
    """Classify the pods of a workload that has this many requested replicas.

    A pod that failed (evicted, preempted) stays as a record after its ReplicaSet has put another in
    its place. It counts only while a replica is missing in its place.
    """
    lasting = [pod for pod in raw if is_terminating(pod) or not is_finished(pod)]
    missing = replicas - sum(1 for pod in lasting if not is_terminating(pod))
    finished = sorted(
        (pod for pod in raw if not is_terminating(pod) and is_finished(pod)),
        key=_created_s,
        reverse=True,
    )
    counted = [*lasting, *finished[: max(missing, 0)]]
    return tuple(_observed(pod, now_s, warmup_timeout_s) for pod in counted)


def _observed(raw: _RawPod, now_s: float, warmup_timeout_s: float) -> ObservedPod:
    state, detail = state_of(raw, now_s, warmup_timeout_s)
    waits_for = gate.waits_for(raw) if state in (PodState.WARMING, PodState.BROKEN) else None
    ready, scheduled = condition(raw, "Ready"), condition(raw, "PodScheduled")
    return ObservedPod(
        pod=Pod(
            uid=raw["metadata"]["uid"],
            state=state,
            created_s=_created_s(raw),
            scheduled_s=since_s(scheduled) if scheduled.get("status") == "True" else None,
            ready_s=since_s(ready) if state is PodState.READY else None,
            detail=reason_and_message(detail, str(waits_for) if waits_for else None),
        ),
        name=raw["metadata"]["name"],
        ip=raw.get("status", {}).get("podIP", ""),
        port=declared_port(raw),
        arguments=_arguments(raw),
        running_s=running_since_s(raw),
        on_host_network=bool((raw.get("spec") or {}).get("hostNetwork")),
        in_replica_set=_in_replica_set(raw),
        marked_by=_marked_by(raw),
        gated=gate.has_gate(raw),
        waits_for=waits_for,
        fetch=download_of(raw),
        held=is_held(raw, now_s),
    )


def preempted(raw: Sequence[_RawPod], pods: Sequence[ObservedPod], before: str) -> str:
    """Name the pod that the scheduler preempted, while one has no node in its place.

    It is deleted, so that its name has to be kept: `before` is that of the last tick.
    """
    for pod in raw:
        disrupted = condition(pod, "DisruptionTarget")
        if disrupted.get("status") == "True" and disrupted.get("reason") == _PREEMPTION:
            return str(pod["metadata"]["name"])
    waiting = (PodState.WARMING, PodState.UNSCHEDULABLE)
    waits = any(one.pod.scheduled_s is None and one.pod.state in waiting for one in pods)
    return before if waits else ""


def is_held(raw: Mapping[str, Any], now_s: float) -> bool:
    """Return whether a pod should have ended, and its node or a finalizer holds it.

    Its deletionTimestamp is when its grace period ends.
    """
    due = raw["metadata"].get("deletionTimestamp")
    return bool(due) and now_s - epoch_s(due) > HELD_AFTER_S


def _arguments(raw: _RawPod) -> tuple[str, ...]:
    return tuple(
        word
        for container in (raw.get("spec") or {}).get("containers") or ()
        for words in (container.get("command"), container.get("args"))
        for word in words or ()
    )


def _in_replica_set(raw: _RawPod) -> bool:
    owners = raw["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner["kind"] == "ReplicaSet" for owner in owners)


def _marked_by(raw: _RawPod) -> MarkedBy:
    annotations = raw["metadata"].get("annotations") or {}
    if REMOVED_FIRST in annotations:
        return MarkedBy.US
    return MarkedBy.OTHERS if DELETION_COST in annotations else MarkedBy.NONE


def _created_s(raw: _RawPod) -> float:
    return epoch_s(raw["metadata"]["creationTimestamp"])
