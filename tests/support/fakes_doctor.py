"""Facts of a healthy cluster for the doctor, and helpers that plant a mistake in them."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from headroom.api.schema.crd import custom_resource_definition
from headroom.cli.commands.doctor.facts import Answered, Facts
from support.service_world import body

How = Answered.How
NOW = "2026-11-20T12:00:00Z"
NOW_S = 1_795_176_000.0
UID = body()["metadata"]["uid"]
SERVICE: dict[str, Any] = body(
    spec__accelerator={"resource": "nvidia.com/gpu", "count": 1},
    metadata__creationTimestamp="2026-11-20T11:00:00Z",
    metadata__managedFields=[{"manager": "headroom", "subresource": "status", "time": NOW}],
    status__observedGeneration=3,
    status__selector="headroom.dev/inference-service=resnet50",
    status__decision={"time": NOW, "replicas": 1, "current": 1},
    status__conditions=[],
)
OPERATOR: dict[str, Any] = {
    "metadata": {"name": "headroom-operator", "namespace": "headroom-system"},
    "spec": {"replicas": 1},
    "status": {"availableReplicas": 1},
}
NODE: dict[str, Any] = {
    "metadata": {"name": "gpu-1"},
    "status": {"allocatable": {"nvidia.com/gpu": "8"}},
}
DEPLOYMENT: dict[str, Any] = {"kind": "Deployment", "metadata": {"name": "resnet50"}, "spec": {}}
PAGE = Answered(
    how=How.PAGE,
    pod="resnet50-abc-1",
    port=8000,
    path="/metrics",
    names=frozenset({"headroom_requests_received_total"}),
)
HEALTHY = Facts(
    version=(1, 34),
    now_s=NOW_S,
    crd=custom_resource_definition(),
    operators=(OPERATOR,),
    services=(SERVICE,),
    targets={UID: DEPLOYMENT},
    nodes=(NODE,),
    answers={UID: PAGE},
)


def labelled(labels: dict[str, str]) -> dict[str, Any]:
    """A Deployment whose pods have these labels."""
    return DEPLOYMENT | {"spec": {"template": {"metadata": {"labels": labels}}}}


def leaving(due: str, *finalizers: str) -> dict[str, Any]:
    """A pod whose grace period ends then."""
    metadata = {"name": "resnet50-1", "namespace": "vision", "deletionTimestamp": due}
    return {"metadata": {**metadata, "finalizers": finalizers}, "spec": {"nodeName": "gpu-1"}}


def budget(name: str, labels: dict[str, str], namespace: str = "vision") -> dict[str, Any]:
    """A PodDisruptionBudget for pods with these labels."""
    metadata = {"name": name, "namespace": namespace}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": labels}}}


def started(namespace: str, *arguments: str, replicas: int = 1) -> dict[str, Any]:
    """An operator of another namespace, with these arguments."""
    container = {"args": ["run", *arguments]}
    return OPERATOR | {
        "metadata": {"name": "headroom-operator", "namespace": namespace},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}},
    }


def serving(**changes: Any) -> Facts:
    """The healthy cluster with a service that differs."""
    one = copy.deepcopy(SERVICE)
    for path, value in changes.items():
        *parents, last = path.split("__")
        inner = one
        for key in parents:
            inner = inner.setdefault(key, {})
        inner[last] = value
    return replace(HEALTHY, services=(one,))


def saying(kind: str, status: str, reason: str, message: str = "as it said") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def conditioned(*conditions: dict[str, str], **changes: Any) -> Facts:
    return serving(status__conditions=list(conditions), **changes)


def closed(name: str, *, lost: bool = False, **changes: Any) -> dict[str, Any]:
    """A node like the other that takes no pods; a lost one still has its accelerators."""
    ready = [{"type": "Ready", "status": "Unknown"}] if lost else []
    status = NODE["status"] | {"conditions": ready}
    return {"metadata": {"name": name}, "status": status, **changes}


def autoscaler(kind: str = "Deployment", name: str = "resnet50", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "cpu", "namespace": "vision", **metadata},
        "spec": {"scaleTargetRef": {"kind": kind, "name": name}},
    }


def lease(renewed: str) -> dict[str, Any]:
    metadata = {"name": "gpu-1", "managedFields": [{"manager": "kubelet", "time": NOW}]}
    return {"metadata": metadata, "spec": {"renewTime": renewed}}


def answering(**changes: Any) -> Facts:
    return replace(HEALTHY, answers={UID: replace(PAGE, **changes)})


def stale_crd() -> dict[str, Any]:
    crd = custom_resource_definition()
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    del properties["spec"]["properties"]["slo"]
    return crd


CUSTOM = {
    "profile": "custom",
    "image": "registry.example/mine:1",
    "maxBatchSize": 8,
    "metrics": {
        "inFlight": {"name": "queued"},
        "arrived": {"name": "seen_total", "absentIsZero": True},
        "latency": {"name": "busy"},
        "runningTime": {"name": "busy_sum", "absentIsZero": True},
    },
}
OF_KEDA = [{"kind": "ScaledObject", "name": "mine", "controller": True}]
TARGET_REF = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "my-vllm"}
PAUSED = DEPLOYMENT | {"spec": {"paused": True}}
