"""Selects the parts of listed objects that are kept: those that the operator reads. Pure.

A tenant decides how large its objects are and how many it has. A pod that is never scheduled may
have a thousand ports, which take 0.5 MB of memory: a thousand such pods ended the operator. So each
list names what it keeps, and how much of it; everything else is dropped while the list is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headroom.adapters.api_server.raw_fields import Manifest, list_at, map_at, maps_at, only

READ_OF_PODS = frozenset(
    {
        "controller.kubernetes.io/pod-deletion-cost",
        "headroom.dev/removed-first",
        "headroom.dev/inference-service",
        "headroom.dev/warmed-for",
        "pod-template-hash",
    }
)
"""Labels and annotations."""
_WARM_GATE = "headroom.dev/warm"
_MOST_CONTAINERS = 32
_MOST_CONDITIONS = 32
_MOST_PORTS = 64
"""Ports of all containers of a pod."""
_MOST_ENDPOINTS = 8
_LONG_TEXT = 256
"""Longest label, annotation or name of an owner."""
_LONG_MESSAGE = 1024
_TEXTS = 8192
"""Characters of a pod's messages, and again of its commands and arguments."""
_WORD = 64
"""Bytes of a text besides its characters."""


def kept_parts(kind: str, one: Any) -> Any:
    """Return the kept parts of a listed object of this kind; the whole object for other kinds."""
    keep = _KEPT.get(kind)
    return keep(one) if keep is not None and isinstance(one, dict) else one


@dataclass(slots=True)
class _Room:
    """Characters that an object's texts may still take."""

    left: int = _TEXTS

    def cut(self, text: object) -> str:
        """Return the part of a message for which there is room."""
        part = str(text)[: min(_LONG_MESSAGE, self.left)]
        self.left -= len(part)
        return part

    def whole(self, words: Iterable[object]) -> list[str] | None:
        """Return the words; None if there is no room for all of them."""
        texts = [str(word) for word in words]
        size = sum(len(text) + _WORD for text in texts)
        if size > self.left:
            return None
        self.left -= size
        return texts


def _pod(pod: Manifest) -> Manifest:
    kept = only(pod, "apiVersion", "kind")
    status = pod.get("status")
    starts = isinstance(status, dict) and not _is_ready(status)
    if isinstance(spec := pod.get("spec"), dict):
        kept["spec"] = _pod_spec(spec, starts=starts)
    if isinstance(status, dict):
        kept["status"] = _pod_status(status, ("ready", "started") if starts else ())
    names = ("labels", "annotations")
    texts = {
        name: {
            key: value
            for key, value in given.items()
            if key in READ_OF_PODS and len(str(value)) <= _LONG_TEXT
        }
        for name in names
        if isinstance(given := map_at(pod, "metadata").get(name), dict)
    }
    return kept | {"metadata": _metadata(pod) | texts}


def _is_ready(status: Manifest) -> bool:
    ready = (one for one in maps_at(status, "conditions") if one.get("type") == "Ready")
    return any(one.get("status") == "True" for one in ready)


def _probe(probe: Manifest, room: _Room) -> Manifest:
    kept = {name: only(map_at(probe, name), "port") for name in ("httpGet", "tcpSocket", "grpc")}
    kept = {name: one for name, one in kept.items() if one}
    if "httpGet" in kept:
        kept["httpGet"]["path"] = room.cut(map_at(probe, "httpGet").get("path", "/"))
    return kept


def _pod_spec(spec: Manifest, *, starts: bool) -> Manifest:
    """Keep the used parts of a spec; probes and init containers only while the pod starts."""
    kept = only(spec, "nodeName", "hostNetwork")
    if starts and "initContainers" in spec:
        inits = maps_at(spec, "initContainers", _MOST_CONTAINERS)
        kept["initContainers"] = [only(one, "name", "restartPolicy") for one in inits]
    gates = [
        one for one in maps_at(spec, "readinessGates") if one.get("conditionType") == _WARM_GATE
    ]
    if gates:
        kept["readinessGates"] = [{"conditionType": _WARM_GATE}]
    room, ports_left, containers = _Room(), _MOST_PORTS, []
    for container in maps_at(spec, "containers", _MOST_CONTAINERS):
        one = only(container, "name")
        ports = [only(each, "name", "containerPort") for each in maps_at(container, "ports")]
        if ports := ports[:ports_left]:
            one["ports"], ports_left = ports, ports_left - len(ports)
        for name in ("command", "args"):
            if words := room.whole(list_at(container, name)):
                one[name] = words
        for name in ("startupProbe", "readinessProbe") if starts else ():
            if isinstance(probe := container.get(name), dict):
                one[name] = _probe(probe, room)
        containers.append(one)
    return kept | ({"containers": containers} if "containers" in spec else {})


def _pod_status(status: Manifest, starting: tuple[str, ...]) -> Manifest:
    room, kept = _Room(), only(status, "phase", "reason", "podIP")
    if "message" in status:
        kept["message"] = room.cut(status["message"])
    if "conditions" in status:
        kept["conditions"] = [
            _with_message(one, room, "type", "status", "reason", "lastTransitionTime")
            for one in maps_at(status, "conditions", _MOST_CONDITIONS)
        ]
    for name in ("initContainerStatuses", "containerStatuses"):
        if name in status:
            kept[name] = [
                only(one, "name", "containerID", "restartCount", *starting)
                | {at: _state(one[at], room) for at in ("state", "lastState") if at in one}
                for one in maps_at(status, name, _MOST_CONTAINERS)
            ]
    return kept


def _state(state: Any, room: _Room) -> Manifest:
    fields = ("reason", "exitCode", "startedAt", "finishedAt")
    return {
        name: _with_message(state[name], room, *fields)
        for name in ("waiting", "running", "terminated")
        if isinstance(state, dict) and isinstance(state.get(name), dict)
    }


def _with_message(one: Manifest, room: _Room, *names: str) -> Manifest:
    message = {"message": room.cut(one["message"])} if "message" in one else {}
    return only(one, *names) | message


def _autoscaler(one: Manifest) -> Manifest:
    kept = {"metadata": _metadata(one)}
    if isinstance(target := map_at(one, "spec").get("scaleTargetRef"), dict):
        kept["spec"] = {"scaleTargetRef": only(target, "apiVersion", "kind", "name")}
    return kept


def _slice(one: Manifest) -> Manifest:
    """Keep some of the endpoints, ready ones first: one is looked for, and Headroom's have one."""
    found = [only(each, "addresses", "conditions") for each in maps_at(one, "endpoints")]
    found.sort(key=lambda each: not map_at(each, "conditions").get("ready"))
    labels = only(map_at(map_at(one, "metadata"), "labels"), "kubernetes.io/service-name")
    return {
        "metadata": _metadata(one) | {"labels": labels},
        "endpoints": found[:_MOST_ENDPOINTS],
        "ports": [only(each, "port") for each in maps_at(one, "ports", 1)],
    }


_KEPT = {"Pod": _pod, "HorizontalPodAutoscaler": _autoscaler, "EndpointSlice": _slice}


def _metadata(one: Manifest) -> Manifest:
    """Keep the identity and the owner that controls the object: it has at most one."""
    metadata = map_at(one, "metadata")
    kept = only(
        metadata,
        *("name", "namespace", "uid", "resourceVersion", "generation"),
        *("creationTimestamp", "deletionTimestamp"),
    )
    owners = [
        only(owner, "apiVersion", "kind", "name", "uid", "controller")
        for owner in maps_at(metadata, "ownerReferences")
        if owner.get("controller") is True
        and all(len(str(value)) <= _LONG_TEXT for value in owner.values())
    ]
    return kept | ({"ownerReferences": owners[:1]} if owners else {})
