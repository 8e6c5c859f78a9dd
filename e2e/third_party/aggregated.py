"""A metrics API of the cluster that is served by a process on the node, through a Service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cluster import Node, wait_until
from cluster.addresses import NODE_ADDRESS

NAMESPACE = "metrics-apis"


def register(node: Node, group: str, version: str, port: int) -> None:
    """Have the API server send this group's requests there, and let the HPA controller ask."""
    name = group.replace(".", "-")
    if not node.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "-o", "name"):
        node.create_namespace(NAMESPACE)
    node.apply(
        *_service(name, port),
        *_permissions(name, group),
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{version}.{group}"},
            "spec": {
                "group": group,
                "version": version,
                "service": {"name": name, "namespace": NAMESPACE, "port": 443},
                "insecureSkipTLSVerify": True,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
        },
    )


def _service(name: str, port: int) -> Sequence[dict[str, Any]]:
    scope = {"name": name, "namespace": NAMESPACE}
    return (
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": scope,
            "spec": {"ports": [{"port": 443, "targetPort": port}]},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**scope, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "ports": [{"port": port}],
            "endpoints": [{"addresses": [NODE_ADDRESS], "conditions": {"ready": True}}],
        },
    )


def _permissions(name: str, group: str) -> Sequence[dict[str, Any]]:
    return (
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": f"reads-{name}"},
            "rules": [{"apiGroups": [group], "resources": ["*"], "verbs": ["get", "list"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"reads-{name}"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": f"reads-{name}",
            },
            "subjects": [
                {
                    "kind": "ServiceAccount",
                    "name": "horizontal-pod-autoscaler",
                    "namespace": "kube-system",
                }
            ],
        },
    )


def wait(node: Node, group: str, version: str, timeout_s: float) -> None:
    """Wait until the API server reaches it."""
    path = f"/apis/apiregistration.k8s.io/v1/apiservices/{version}.{group}"

    def available() -> bool:
        found = node.raw.ask("GET", path).get("status", {}).get("conditions", ())
        return any((one["type"], one["status"]) == ("Available", "True") for one in found)

    wait_until(available, what=f"{version}.{group} is available", timeout_s=timeout_s)
