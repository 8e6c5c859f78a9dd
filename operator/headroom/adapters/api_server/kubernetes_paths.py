"""Paths of objects in the Kubernetes API. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

Manifest = dict[str, Any]

PLURALS = {
    "CustomResourceDefinition": "customresourcedefinitions",
    "Deployment": "deployments",
    "EndpointSlice": "endpointslices",
    "Event": "events",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "NetworkPolicy": "networkpolicies",
    "InferenceService": "inferenceservices",
    "Lease": "leases",
    "Node": "nodes",
    "Pod": "pods",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "ReplicaSet": "replicasets",
    "Secret": "secrets",
    "SelfSubjectAccessReview": "selfsubjectaccessreviews",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "StatefulSet": "statefulsets",
    "SubjectAccessReview": "subjectaccessreviews",
    "TokenReview": "tokenreviews",
}


def path_to(api_version: str, kind: str, namespace: str | None, name: str = "") -> str:
    """Return the path of an object of a known kind, or of its list without a name."""
    return located(api_version, PLURALS[kind], namespace, name)


def located(api_version: str, plural: str, namespace: str | None, name: str) -> str:
    """Return the path by plural; a namespace of None means cluster scope."""
    scope = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    of_one = f"/{quote(name, safe='')}" if name else ""
    return f"{root(api_version)}{scope}/{plural}{of_one}"


def root(api_version: str) -> str:
    """Return the path of a group and version."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def path_of(manifest: Manifest) -> str:
    """Return the path of a named object."""
    metadata, kind = manifest["metadata"], manifest["kind"]
    return path_to(manifest["apiVersion"], kind, metadata["namespace"], metadata["name"])
