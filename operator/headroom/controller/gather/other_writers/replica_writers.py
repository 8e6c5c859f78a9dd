"""Field managers that own the replica count of a workload. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def writers_of_replicas(workload: Mapping[str, Any]) -> list[str]:
    """Return the managers that own the number of replicas, as far as the object shows them.

    Where a kind stores its replicas elsewhere than in spec.replicas, only writes of /scale show.
    """
    return [
        str(entry.get("manager", ""))
        for entry in workload["metadata"].get("managedFields") or ()
        if owns_replicas(entry.get("fieldsV1") or {}) or entry.get("subresource") == "scale"
    ]


def owns_replicas(fields: Mapping[str, Any]) -> bool:
    """Return whether an entry of managedFields has spec.replicas."""
    return "f:replicas" in fields.get("f:spec", {})
