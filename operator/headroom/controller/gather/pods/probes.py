"""The probe that a running container has not passed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def not_passed(pod: Mapping[str, Any]) -> str:
    """Return the first running container that is not ready, with its probe; empty without one."""
    specs = {one["name"]: one for one in (pod.get("spec") or {}).get("containers") or ()}
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        running = (container.get("state") or {}).get("running") is not None
        if not running or container.get("ready"):
            continue
        spec = specs.get(container["name"]) or {}
        started = container.get("started") or not spec.get("startupProbe")
        kind = "readiness" if started else "startup"
        if probe := spec.get(f"{kind}Probe"):
            asked = _asked(probe)
            return f"container {container['name']} has not passed its {kind} probe{asked}"
    return ""


def _asked(probe: Mapping[str, Any]) -> str:
    """Return the kubelet's request, in parentheses; empty for a command."""
    if http := probe.get("httpGet"):
        return f" (GET {http.get('path') or '/'} at port {http.get('port')})"
    for kind in ("tcpSocket", "grpc"):
        if port := (probe.get(kind) or {}).get("port"):
            return f" ({kind} at port {port})"
    return ""
