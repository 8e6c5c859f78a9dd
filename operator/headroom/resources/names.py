"""Names, labels, selectors and field managers of all child objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headroom.api.kind import API_VERSION, GROUP, KIND
from headroom.api.service_spec.routing import SERVICE_PORT

if TYPE_CHECKING:
    from headroom.api import InferenceService

FIELD_MANAGER = "headroom"
"""Field manager that applies the children."""
SCALER_FIELD_MANAGER = "headroom-scaler"
"""Field manager that writes only replicas."""

VICTIM_FIELD_MANAGER = "headroom-victims"
"""Field manager that marks the pods to remove first."""

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""A ReplicaSet removes the ready pod with the lower cost first."""
REMOVED_FIRST = f"{GROUP}/removed-first"
"""Annotation with the reason of a deletion cost."""
SERVICE_LABEL = f"{GROUP}/inference-service"
ROUTED_LABEL = f"{GROUP}/routed-by"
"""Selector label that no pod has."""
WARM_GATE = f"{GROUP}/warm"
"""Readiness gate of pods that the operator warms up."""
WARMED_LABEL = f"{GROUP}/warmed-for"
"""Label of such a pod with its InferenceService, used by the pod watch."""
CONTAINER = "server"
PORT_NAME = "http"
MODEL_MOUNT = "/models"
MODEL_VOLUME = "model"
DOWNLOADER = "model"
"""The init container that downloads the weights."""


def selector_labels(name: str) -> dict[str, str]:
    """Return the selector of the pods; immutable in a Deployment, so never extended."""
    return {SERVICE_LABEL: name}


def selector_text(name: str) -> str:
    """Return the selector in the form of a query parameter."""
    return ",".join(f"{key}={value}" for key, value in selector_labels(name).items())


def replicas_service(name: str) -> str:
    """Return the name of the replicas' headless Service in Gateway mode."""
    return f"{name}-replicas"


def client_service(service: InferenceService) -> str:
    """Return the name of the Service for clients; a target's creator may have one of its name."""
    if service.spec.target_ref is None:
        return service.name
    return service.spec.routing.service_name or f"{service.name}-gateway"


def client_port(service: InferenceService) -> int:
    """Return the port of that Service."""
    return service.spec.routing.service_port or SERVICE_PORT


def gateway_slice(service_name: str) -> str:
    """Return the name of the EndpointSlice with the gateway's address, by the Service's."""
    return f"{service_name}-gateway"


def labels(name: str) -> dict[str, str]:
    """Return the labels that the operator gives every child."""
    return {
        "app.kubernetes.io/managed-by": "headroom",
        "app.kubernetes.io/name": name,
        **selector_labels(name),
    }


def metadata(service: InferenceService) -> dict[str, Any]:
    """Return the metadata of a child: named like the service, deleted with it."""
    return {
        "name": service.name,
        "namespace": service.namespace,
        **common_metadata(service),
        "ownerReferences": [owner_reference(service)],
    }


def common_metadata(service: InferenceService) -> dict[str, dict[str, str]]:
    """Return labels and annotations of children and pods; Headroom's have precedence."""
    given = service.spec.common_metadata
    annotations = {"annotations": dict(given.annotations)} if given.annotations else {}
    return {"labels": {**(given.labels or {}), **labels(service.name)}, **annotations}


def owner_reference(service: InferenceService) -> dict[str, Any]:
    """Return the owner reference, by which garbage collection deletes a child with its service."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": service.name,
        "uid": service.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_owner(
    service: Mapping[str, Any], child: Mapping[str, Any], reference: Mapping[str, Any]
) -> bool:
    """Return whether a child's reference names this InferenceService; both by their metadata.

    The API server does not check references: group, kind, namespace, name and UID must all agree.
    """
    return (
        service.get("namespace") == child.get("namespace")
        and str(reference.get("apiVersion", "")).partition("/")[0] == GROUP
        and reference.get("kind") == KIND
        and reference.get("name") == service.get("name")
        and reference.get("uid") == service.get("uid")
    )
