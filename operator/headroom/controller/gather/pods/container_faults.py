"""Faults of a pod's containers that do not end without a change, and since when they run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headroom.api.timestamps import epoch_s
from headroom.controller.gather.pods import probes
from headroom.resources.object_conditions import condition, reason_and_message, since_s

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

NOT_MOUNTED = "its volumes or its network have not been ready"

STOPPED_CODES = frozenset({0, 137, 143})
"""Exit codes of a container after SIGTERM and SIGKILL."""

_RawPod = Mapping[str, Any]


def container_fault(raw: _RawPod, now_s: float, warmup_timeout_s: float) -> str:
    """Return why an unready pod cannot become ready without a change; empty while it can."""
    status = raw.get("status", {})
    return (
        _stuck(status)
        or _restarting(raw, now_s, warmup_timeout_s)
        or _overdue(raw, now_s, warmup_timeout_s)
    )


def running_since_s(raw: _RawPod) -> float | None:
    """Return since when all containers of a pod run; None while one does not."""
    started = [_started_at(one) for one in raw.get("status", {}).get("containerStatuses") or ()]
    return max(map(epoch_s, started)) if started and all(started) else None


def _stuck(status: _RawPod) -> str:
    for container in _containers(status):
        waiting = container.get("state", {}).get("waiting") or {}
        if waiting.get("reason") in STUCK_REASONS:
            words = reason_and_message(waiting["reason"], waiting.get("message"))
            return f"container {container['name']}: {words}{_last_end(container)}"
    return ""


def _restarting(raw: _RawPod, now_s: float, warmup_timeout_s: float) -> str:
    """Return why it keeps restarting; only recent ends count, since old pods have restarts too."""
    for container in _containers(raw.get("status", {})):
        ended = container.get("lastState", {}).get("terminated") or {}
        restarts = container.get("restartCount", 0)
        if restarts < RESTARTS_OF_A_BROKEN_POD or not ended.get("finishedAt"):
            continue
        if now_s - epoch_s(ended["finishedAt"]) <= warmup_timeout_s:
            said = f"container {container['name']}: restarted {restarts} times"
            probe = probes.not_passed(raw) if _is_stopped(ended) else ""
            return f"{said}{_last_end(container)}{f'; {probe}' if probe else ''}"
    return ""


def _is_stopped(ended: Mapping[str, Any]) -> bool:
    """Return whether a container may have been ended from outside, as a failed probe does."""
    return ended.get("exitCode") in STOPPED_CODES and ended.get("reason") != "OOMKilled"


def _overdue(raw: _RawPod, now_s: float, warmup_timeout_s: float) -> str:
    """Return why the warm-up took too long; an image pull counts only after a failure."""
    since = since_s(condition(raw, "Ready"))
    if since is None:
        return ""
    containers = raw.get("status", {}).get("containerStatuses") or ()
    restarts = max((one.get("restartCount", 0) for one in containers), default=0)
    if restarts == 0:
        running_s = running_since_s(raw)
        if running_s is None:
            return _unmounted(raw, now_s, warmup_timeout_s)
        since = max(since, running_s)
    if now_s - since <= warmup_timeout_s:
        return ""
    again = f", restarted {restarts} times" if restarts else ""
    probe = f": {not_passed}" if (not_passed := probes.not_passed(raw)) else ""
    limit = f"warm-up timeout {warmup_timeout_s:.0f} s{again}"
    return f"not ready for {now_s - since:.0f} s ({limit}){probe}"


def lacks_sandbox(raw: _RawPod) -> bool:
    """Return whether volumes, or the network, keep a pod that has a node from starting anything.

    While an image is pulled they are ready. Kubernetes 1.28 and earlier do not say it.
    """
    return condition(raw, "PodReadyToStartContainers").get("status") == "False"


def _unmounted(raw: _RawPod, now_s: float, warmup_timeout_s: float) -> str:
    since = since_s(condition(raw, "PodScheduled"))
    if since is None or not lacks_sandbox(raw) or now_s - since <= warmup_timeout_s:
        return ""
    return f"{NOT_MOUNTED} for {now_s - since:.0f} s (warm-up timeout {warmup_timeout_s:.0f} s)"


def _containers(status: _RawPod) -> Iterable[_RawPod]:
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _last_end(container: _RawPod) -> str:
    ended = container.get("lastState", {}).get("terminated")
    if not ended:
        return ""
    words = reason_and_message(ended.get("reason"), ended.get("message"))
    return f", last ended with {words} (code {ended.get('exitCode')})"


def _started_at(container: _RawPod) -> str:
    running = container.get("state", {}).get("running") or {}
    return str(running.get("startedAt") or "")
