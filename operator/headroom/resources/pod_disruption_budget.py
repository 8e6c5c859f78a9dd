"""The PodDisruptionBudget: node drains evict one replica at a time, unready ones always."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headroom.resources import names

if TYPE_CHECKING:
    from headroom.api import InferenceService


def build(service: InferenceService) -> dict[str, Any]:
    """Build the PodDisruptionBudget."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": names.metadata(service),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": names.selector_labels(service.name)},
        },
    }
