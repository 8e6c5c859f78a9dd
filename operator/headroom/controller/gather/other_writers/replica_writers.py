"""Field managers that own the replica count of a workload. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

OF_AUTOSCALERS = "kube-controller-manager"
"""Field manager of what HPAs write."""


def writers_of_replicas(workload: Mapping[str, Any]) -> list[str]:
    """Return the managers that own the number of replicas, as far as the object shows them.

    Where a kind stores its replicas elsewhere than in spec.replicas, only writes of /scale show.
    """
    return [str(entry.get("manager", "")) for entry in _entries(workload)]


def autoscaler_wrote(workload: Mapping[str, Any]) -> bool | None:
    """Return whether the replicas in force are an HPA's; None where the object does not show it.

    Writes of /scale have no time (Kubernetes 1.36).
    """
    if not workload["metadata"].get("managedFields"):
        return None
    return OF_AUTOSCALERS in writers_of_replicas(workload)


def owns_replicas(fields: Mapping[str, Any]) -> bool:
    """Return whether an entry of managedFields has spec.replicas."""
    return "f:replicas" in fields.get("f:spec", {})


def _entries(workload: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for entry in workload["metadata"].get("managedFields") or ():
        if owns_replicas(entry.get("fieldsV1") or {}) or entry.get("subresource") == "scale":
            yield entry
