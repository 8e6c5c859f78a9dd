"""Names, labels, selectors and field managers of what the operator writes, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headroom.api.kind import API_VERSION, GROUP, KIND

if TYPE_CHECKING:
    from headroom.api import InferenceService

FIELD_MANAGER = "headroom"
"""Applies the children."""
SCALER_FIELD_MANAGER = "headroom-scaler"
"""Writes replicas, and nothing else."""

VICTIM_FIELD_MANAGER = "headroom-victims"
"""Marks pods that a scale-down takes first."""

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Of two pods that are both ready a ReplicaSet removes the one with less."""
REMOVED_FIRST = f"{GROUP}/removed-first"
"""Says beside a cost of ours why."""
SERVICE_LABEL = f"{GROUP}/inference-service"
ROUTED_LABEL = f"{GROUP}/routed-by"
"""No pod carries it."""
WARM_GATE = f"{GROUP}/warm"
"""Readiness gate of pods that the operator warms."""
WARMED_LABEL = f"{GROUP}/warmed-for"
"""Names on such a pod the InferenceService that has it warmed, so that its changes are told."""
CONTAINER = "server"
PORT_NAME = "http"
SERVICE_PORT = 80
MODEL_MOUNT = "/models"
MODEL_VOLUME = "model"
DOWNLOADER = "model"
"""The init container that fetches the weights."""


def selector_labels(name: str) -> dict[str, str]:
    """Give the labels that select the pods; immutable in a Deployment, so never extended."""
    return {SERVICE_LABEL: name}


def selector_text(name: str) -> str:
    """Give the same as the API server takes it in a query."""
    return ",".join(f"{key}={value}" for key, value in selector_labels(name).items())


def replicas_service(name: str) -> str:
    """Name the headless Service of the replicas, beside one that leads to a gateway."""
    return f"{name}-replicas"


def gateway_slice(name: str) -> str:
    """Name the slice that leads a Service to a gateway."""
    return f"{name}-gateway"


def labels(name: str) -> dict[str, str]:
    """Give the labels of every child."""
    return {
        "app.kubernetes.io/managed-by": "headroom",
        "app.kubernetes.io/name": name,
        **selector_labels(name),
    }


def metadata(service: InferenceService) -> dict[str, Any]:
    """Give the metadata of a child: named like the service, deleted with it."""
    return {
        "name": service.name,
        "namespace": service.namespace,
        "labels": labels(service.name),
        "ownerReferences": [owner_reference(service)],
    }


def owner_reference(service: InferenceService) -> dict[str, Any]:
    """Give the reference by which garbage collection deletes a child with its service."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": service.name,
        "uid": service.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
