"""Index the pods that are ready and not terminating, from a watch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from headroom.controller.ports import Manifest
from headroom.resources.names import SERVICE_LABEL
from headroom.resources.object_conditions import is_true
from headroom.resources.server_port import declared_port

_Group = tuple[str, str]
"""Namespace, and the service of the pod's label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyPod:
    """A pod that may be sent requests."""

    uid: str
    name: str
    address: str
    restarts: int
    """Restarts of its containers: after a restart nothing listens for a moment."""
    port: int | None = None
    """Port that its model server declares."""


@dataclass(slots=True)
class ReadyPodIndex:
    """Ready pods by service; calls `on_change` when a service's set changes."""

    on_change: Callable[[], None]
    synced: bool = False
    """Whether everything that exists was reported once."""
    _warm: dict[_Group, dict[str, ReadyPod]] = field(default_factory=dict)
    _groups: dict[str, _Group] = field(default_factory=dict)
    """Group of each pod, by UID: its label may have changed since."""

    def ready(self, namespace: str, name: str = "") -> tuple[ReadyPod, ...]:
        """Return the ready pods of a service; without a name those without a service's label."""
        return tuple(self._warm.get((namespace, name), {}).values())

    def replace(self, pods: Iterable[Manifest]) -> None:
        """Replace all pods."""
        before, self._warm, self._groups = self._warm, {}, {}
        known, self.synced = self.synced, True
        for pod in pods:
            self._enter(pod)
        if self._warm != before or not known:
            self.on_change()

    def observe(self, event: str, pod: Manifest) -> None:
        """Process one event of a watch."""
        before = self._leave(pod["metadata"]["uid"])
        after = None if event == "DELETED" else self._enter(pod)
        if before != after:
            self.on_change()

    def _leave(self, uid: str) -> tuple[_Group, ReadyPod] | None:
        group = self._groups.pop(uid, None)
        return None if group is None else (group, self._warm[group].pop(uid))

    def _enter(self, pod: Manifest) -> tuple[_Group, ReadyPod] | None:
        warm, group = ready_pod(pod), _group(pod)
        if warm is None or (group[1] and not _is_of(pod, group[1])):
            return None
        self._warm.setdefault(group, {})[warm.uid] = warm
        self._groups[warm.uid] = group
        return group, warm


def _group(pod: Manifest) -> _Group:
    labels = pod["metadata"].get("labels") or {}
    return pod["metadata"]["namespace"], labels.get(SERVICE_LABEL, "")


def _is_of(pod: Manifest, deployment: str) -> bool:
    """Return whether it is the Deployment's; any pod may have its label.

    A Deployment names its ReplicaSets after itself and the hash that it puts on their pods.
    """
    metadata = pod["metadata"]
    template_hash = (metadata.get("labels") or {}).get("pod-template-hash")
    return any(
        owner.get("controller")
        and owner.get("kind") == "ReplicaSet"
        and owner.get("name") == f"{deployment}-{template_hash}"
        for owner in metadata.get("ownerReferences") or ()
    )


def ready_pod(pod: Manifest) -> ReadyPod | None:
    """Return the pod if it may be sent requests."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    if not is_true(pod, "Ready") or metadata.get("deletionTimestamp") or not status.get("podIP"):
        return None
    return ReadyPod(
        uid=metadata["uid"],
        name=metadata["name"],
        address=status["podIP"],
        restarts=sum(one.get("restartCount", 0) for one in status.get("containerStatuses") or ()),
        port=declared_port(pod),
    )
