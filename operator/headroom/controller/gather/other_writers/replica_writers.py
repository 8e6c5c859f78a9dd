"""Field managers that own the replica count of a workload. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headroom.api.timestamps import epoch_s

OF_AUTOSCALERS = "kube-controller-manager"
"""Field manager of what HPAs write."""


def writers_of_replicas(workload: Mapping[str, Any]) -> list[str]:
    """Return the managers that own the number of replicas, as far as the object shows them.

    Where a kind stores its replicas elsewhere than in spec.replicas, only writes of /scale show.
    """
    return [str(entry.get("manager", "")) for entry in _entries(workload)]


def autoscaler_wrote_s(workload: Mapping[str, Any]) -> float:
    """Return when an HPA wrote the replicas that are in force; 0 if none did."""
    written = (
        epoch_s(entry["time"])
        for entry in _entries(workload)
        if entry.get("manager") == OF_AUTOSCALERS and entry.get("time")
    )
    return max(written, default=0.0)


def owns_replicas(fields: Mapping[str, Any]) -> bool:
    """Return whether an entry of managedFields has spec.replicas."""
    return "f:replicas" in fields.get("f:spec", {})


def _entries(workload: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for entry in workload["metadata"].get("managedFields") or ():
        if owns_replicas(entry.get("fieldsV1") or {}) or entry.get("subresource") == "scale":
            yield entry
