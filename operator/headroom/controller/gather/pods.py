"""Raw pods → what each is worth to the decision. Pure.

The ladder, first match wins:

    deletionTimestamp                                     Terminating
    phase Failed or Succeeded                             Broken, unless another has its place
    Ready                                                 Ready
    PodScheduled is False                                 Unschedulable
    its node is lost                                      Broken
    a container waits for what will not pass unattended   Broken
    a container ended at least twice, last not long ago   Broken
    not ready for longer than the warm-up timeout         Broken
    otherwise                                             Warming
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headroom.api.timestamps import epoch_s
from headroom.controller.gather import slow_start
from headroom.controller.gather.model_download import ModelDownload, download_of
from headroom.controller.warmup import gate
from headroom.resources.names import DELETION_COST, REMOVED_FIRST
from headroom.resources.server_port import declared_port
from headroom.scaling.values.observation import Pod, PodState

STUCK_REASONS = frozenset(
    {
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "ErrImageNeverPull",
        "ImageInspectError",
        "InvalidImageName",
        "RegistryUnavailable",
        "CreateContainerConfigError",
        "CreateContainerError",
        "PreCreateHookError",
        "PostStartHookError",
        "RunContainerError",
    }
)
"""Reasons of the kubelet for a waiting container that need someone to change something."""

RESTARTS_OF_A_BROKEN_POD = 2
"""One restart may be an accident.

CrashLoopBackOff shows between restarts only, so restarts are counted too.
"""

HELD_AFTER_S = 60.0
"""Beyond the grace period: a kubelet that is slow to clean up takes some seconds."""

_RawPod = Mapping[str, Any]


class MarkedBy(StrEnum):
    """Which client set the cost by which a ReplicaSet chooses what it removes."""

    NOBODY = "Nobody"
    US = "Us"
    OTHERS = "Others"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPod:
    """A pod, and where it can be scraped."""

    pod: Pod
    name: str
    ip: str
    port: int | None = None
    """That its model server declares."""
    arguments: tuple[str, ...] = ()
    """What its containers are started with: commands and arguments."""
    running_s: float | None = None
    """Since when all of its containers run; None while one does not."""
    on_host_network: bool = False
    in_replica_set: bool = False
    marked_by: MarkedBy = MarkedBy.NOBODY
    gated: bool = False
    """Whether it becomes ready only when the operator has warmed it."""
    waits_for: gate.GateReason | None = None
    """Why the gate is closed, if nothing else is missing."""
    fetch: ModelDownload | None = None
    """The download of its model; None where it has none."""
    held: bool = False
    """Whether it should have ended."""


def observe(
    raw: Sequence[_RawPod], *, now_s: float, warmup_timeout_s: float, replicas: int
) -> tuple[ObservedPod, ...]:
    """Classify the pods of a workload that has so many requested replicas.

    A pod that failed (evicted, preempted) stays as a record after its ReplicaSet has put another in
    its place. It counts only while it stands for a replica that is missing.
    """
    lasting = [pod for pod in raw if _is_terminating(pod) or not _is_finished(pod)]
    missing = replicas - sum(1 for pod in lasting if not _is_terminating(pod))
    finished = sorted(
        (pod for pod in raw if not _is_terminating(pod) and _is_finished(pod)),
        key=_created_s,
        reverse=True,
    )
    counted = [*lasting, *finished[: max(missing, 0)]]
    return tuple(_observed(pod, now_s, warmup_timeout_s) for pod in counted)


def _observed(raw: _RawPod, now_s: float, warmup_timeout_s: float) -> ObservedPod:
    state, detail = _classify(raw, now_s, warmup_timeout_s)
    waits_for = gate.waits_for(raw) if state in (PodState.WARMING, PodState.BROKEN) else None
    ready, scheduled = _condition(raw, "Ready"), _condition(raw, "PodScheduled")
    return ObservedPod(
        pod=Pod(
            uid=raw["metadata"]["uid"],
            state=state,
            created_s=_created_s(raw),
            scheduled_s=_transition_s(scheduled) if scheduled.get("status") == "True" else None,
            ready_s=_transition_s(ready) if state is PodState.READY else None,
            detail=_words(detail, str(waits_for) if waits_for else None),
        ),
        name=raw["metadata"]["name"],
        ip=raw.get("status", {}).get("podIP", ""),
        port=declared_port(raw),
        arguments=_arguments(raw),
        running_s=_running_s(raw),
        on_host_network=bool((raw.get("spec") or {}).get("hostNetwork")),
        in_replica_set=_in_replica_set(raw),
        marked_by=_marked_by(raw),
        gated=gate.has_gate(raw),
        waits_for=waits_for,
        fetch=download_of(raw),
        held=is_held(raw, now_s),
    )


def is_held(raw: Mapping[str, Any], now_s: float) -> bool:
    """Whether a pod should have ended, and its node or a finalizer holds it.

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


def _classify(raw: _RawPod, now_s: float, warmup_timeout_s: float) -> tuple[PodState, str]:
    status = raw.get("status", {})
    ready, scheduled = _condition(raw, "Ready"), _condition(raw, "PodScheduled")
    if _is_terminating(raw):
        return PodState.TERMINATING, ""
    if _is_finished(raw):
        return PodState.BROKEN, _words(status.get("reason", status["phase"]), status.get("message"))
    if ready.get("status") == "True":
        return PodState.READY, ""
    if scheduled.get("status") == "False":
        return PodState.UNSCHEDULABLE, _words(scheduled.get("reason"), scheduled.get("message"))
    if ready.get("status") == "Unknown" or status.get("phase") == "Unknown":
        return PodState.BROKEN, _words(ready.get("reason", "NodeLost"), ready.get("message"))
    if _is_unready_without_kubelet(ready, status):
        node = (raw.get("spec") or {}).get("nodeName", "")
        return PodState.BROKEN, _words("NodeLost", f"see kubectl describe node {node}")
    broken = (
        _stuck_container(status)
        or _restarting_container(status, now_s, warmup_timeout_s)
        or _overdue(raw, now_s, warmup_timeout_s)
    )
    if broken:
        return PodState.BROKEN, broken
    return PodState.WARMING, slow_start.waits_for(raw, now_s)


def _stuck_container(status: _RawPod) -> str:
    for container in _containers(status):
        waiting = container.get("state", {}).get("waiting") or {}
        if waiting.get("reason") in STUCK_REASONS:
            words = _words(waiting["reason"], waiting.get("message"))
            return f"container {container['name']}: {words}{_last_end(container)}"
    return ""


def _restarting_container(status: _RawPod, now_s: float, warmup_timeout_s: float) -> str:
    """A pod that served for weeks has restarts too: only an end not long ago counts."""
    for container in _containers(status):
        ended = container.get("lastState", {}).get("terminated") or {}
        restarts = container.get("restartCount", 0)
        if restarts < RESTARTS_OF_A_BROKEN_POD or not ended.get("finishedAt"):
            continue
        if now_s - epoch_s(ended["finishedAt"]) <= warmup_timeout_s:
            return (
                f"container {container['name']}: restarted {restarts} times{_last_end(container)}"
            )
    return ""


def _overdue(raw: _RawPod, now_s: float, warmup_timeout_s: float) -> str:
    """Time in the image pull does not count, unless the container has failed before."""
    since = _transition_s(_condition(raw, "Ready"))
    if since is None:
        return ""
    containers = raw.get("status", {}).get("containerStatuses") or ()
    restarts = max((one.get("restartCount", 0) for one in containers), default=0)
    if restarts == 0:
        started = [_started(one) for one in containers]
        if not started or not all(started):
            return ""
        since = max(since, *map(epoch_s, started))
    if now_s - since <= warmup_timeout_s:
        return ""
    again = f", restarted {restarts} times" if restarts else ""
    return f"not ready for {now_s - since:.0f} s (warm-up timeout {warmup_timeout_s:.0f} s{again})"


def _is_unready_without_kubelet(ready: _RawPod, status: _RawPod) -> bool:
    """Whether the node controller made it unready because its kubelet does not report any more.

    It says no reason and leaves ContainersReady as it was; a kubelet changes both and says one.
    """
    containers_ready = _condition({"status": status}, "ContainersReady").get("status") == "True"
    return containers_ready and ready.get("status") == "False" and not ready.get("reason")


def _is_terminating(raw: _RawPod) -> bool:
    return raw["metadata"].get("deletionTimestamp") is not None


def _is_finished(raw: _RawPod) -> bool:
    return raw.get("status", {}).get("phase") in ("Failed", "Succeeded")


def _in_replica_set(raw: _RawPod) -> bool:
    owners = raw["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner["kind"] == "ReplicaSet" for owner in owners)


def _marked_by(raw: _RawPod) -> MarkedBy:
    annotations = raw["metadata"].get("annotations") or {}
    if REMOVED_FIRST in annotations:
        return MarkedBy.US
    return MarkedBy.OTHERS if DELETION_COST in annotations else MarkedBy.NOBODY


def _created_s(raw: _RawPod) -> float:
    return epoch_s(raw["metadata"]["creationTimestamp"])


def is_ready(raw: Mapping[str, Any]) -> bool:
    """Whether its Ready condition is True, also while it terminates."""
    return bool(_condition(raw, "Ready").get("status") == "True")


def _condition(raw: _RawPod, kind: str) -> _RawPod:
    for condition in raw.get("status", {}).get("conditions") or ():
        if condition["type"] == kind:
            return condition  # type: ignore[no-any-return]
    return {}


def _transition_s(condition: _RawPod) -> float | None:
    moment = condition.get("lastTransitionTime")
    return epoch_s(moment) if moment else None


def _containers(status: _RawPod) -> Iterable[_RawPod]:
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _running_s(raw: _RawPod) -> float | None:
    started = [_started(one) for one in raw.get("status", {}).get("containerStatuses") or ()]
    return max(map(epoch_s, started)) if started and all(started) else None


def _started(container: _RawPod) -> str:
    running = container.get("state", {}).get("running") or {}
    return str(running.get("startedAt") or "")


def _last_end(container: _RawPod) -> str:
    ended = container.get("lastState", {}).get("terminated")
    if not ended:
        return ""
    words = _words(ended.get("reason"), ended.get("message"))
    return f", last ended with {words} (code {ended.get('exitCode')})"


def _words(reason: str | None, message: str | None) -> str:
    return ": ".join(part for part in (reason, message) if part)
