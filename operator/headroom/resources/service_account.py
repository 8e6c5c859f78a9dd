"""The ServiceAccount of the replicas, for image pulls and policies; it has no API access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headroom.resources import names

if TYPE_CHECKING:
    from headroom.api import InferenceService


def runs_as(deployment: Mapping[str, Any], account: Mapping[str, Any]) -> bool:
    """Return whether the pods of a Deployment get this object as their ServiceAccount."""
    pod = deployment["spec"]["template"]["spec"]
    named = pod.get("serviceAccountName") or pod.get("serviceAccount") or "default"
    return account["kind"] == "ServiceAccount" and bool(named == account["metadata"]["name"])


def build(service: InferenceService) -> dict[str, Any]:
    """Build the ServiceAccount; no token is mounted for it."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": names.metadata(service),
        "automountServiceAccountToken": False,
    }
