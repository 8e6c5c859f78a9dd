"""Reason for the slow start of a pod that has a node. Pure.

A pod whose volume is missing, whose image is pulled or whose init container runs has no log of a
server that would say so, and its containers are in no state that the kubelet reports as an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headroom.api.timestamps import epoch_s
from headroom.controller.gather.pods import probes
from headroom.controller.gather.pods.container_faults import (
    NOT_MOUNTED,
    lacks_sandbox,
    running_since_s,
)
from headroom.resources import object_conditions

USUAL_S = 60.0
"""Most pods have mounted their volumes by then."""
_AFTER_OTHERS = "PodInitializing"


def waits_for(pod: Mapping[str, Any], now_s: float) -> str:
    """Return the wait of the first container that does not run or is not ready, as text.

    Empty while that is usual.
    """
    status = pod.get("status") or {}
    since_s = _scheduled_s(pod)
    if since_s is None or now_s - since_s < USUAL_S:
        return ""
    if lacks_sandbox(pod):
        return f"{NOT_MOUNTED} for {now_s - since_s:.0f} s"
    sidecars = _sidecars(pod)
    for container in status.get("initContainerStatuses") or ():
        state = container.get("state") or {}
        if begun := (state.get("running") or {}).get("startedAt"):
            if container["name"] in sidecars:
                continue
            seconds = now_s - epoch_s(begun)
            return f"init container {container['name']} has been running for {seconds:.0f} s"
        if found := _waiting(container, "init container", now_s - since_s):
            return found
    for container in status.get("containerStatuses") or ():
        if found := _waiting(container, "container", now_s - since_s):
            return found
    return _loads(pod, now_s)


def _sidecars(pod: Mapping[str, Any]) -> set[str]:
    """Name the init containers that go on running; `started` is true for the others, too."""
    containers = (pod.get("spec") or {}).get("initContainers") or ()
    return {one["name"] for one in containers if one.get("restartPolicy") == "Always"}


def _loads(pod: Mapping[str, Any], now_s: float) -> str:
    """Return the probe that has not passed, and for how long the containers run."""
    missing, running_s = probes.not_passed(pod), running_since_s(pod)
    if not missing or running_s is None:
        return missing
    return f"{missing} {max(0.0, now_s - running_s):.0f} s after its start"


def _waiting(container: Mapping[str, Any], kind: str, for_s: float) -> str:
    reason = ((container.get("state") or {}).get("waiting") or {}).get("reason")
    if not reason or reason == _AFTER_OTHERS:
        return ""
    return f"{kind} {container['name']} has not started for {for_s:.0f} s ({reason})"


def _scheduled_s(pod: Mapping[str, Any]) -> float | None:
    scheduled = object_conditions.condition(pod, "PodScheduled")
    return object_conditions.since_s(scheduled) if scheduled.get("status") == "True" else None
