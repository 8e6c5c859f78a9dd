"""The ServiceAccount of the replicas, for image pulls and policies; it has no API access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headroom.resources import names

if TYPE_CHECKING:
    from headroom.api import InferenceService


def build(service: InferenceService) -> dict[str, Any]:
    """Build the ServiceAccount; no token is mounted for it."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": names.metadata(service),
        "automountServiceAccountToken": False,
    }
