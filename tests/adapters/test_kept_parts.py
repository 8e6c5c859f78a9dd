"""Tenants decide how large and how many their objects are: lists keep what is read of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headroom.adapters.api_server.kept_parts import READ_OF_PODS, kept_parts
from headroom.api.timestamps import epoch_s
from headroom.controller.gather.other_writers.autoscalers import named, scaled_by
from headroom.controller.gather.pods.pods import observe
from headroom.controller.routing.port_numbers import read
from headroom.controller.routing.ready_pods import ready_pod
from headroom.controller.warmup import gate
from headroom.resources import names

TEXTS = {f"a{number}": "x" * 200 for number in range(1200)}
OWNERS = [{"apiVersion": "v1", "kind": "K" * 100, "name": "n", "uid": str(at)} for at in range(900)]
IDENTITY = {"name": "p", "namespace": "vision", "uid": "u", "resourceVersion": "7"}
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "s-1", "uid": "r"}
CONTROLLER = OWNER | {"controller": True, "blockOwnerDeletion": True}
METADATA: dict[str, Any] = {
    **IDENTITY,
    "creationTimestamp": "2026-11-27T00:00:00Z",
    "annotations": TEXTS | dict.fromkeys(READ_OF_PODS, "1"),
    "labels": TEXTS | dict.fromkeys(READ_OF_PODS, "1"),
    "ownerReferences": [*OWNERS, CONTROLLER],
    "managedFields": [{"fieldsV1": TEXTS}],
    "finalizers": ["f"] * 900,
}
ENDED = {"terminated": {"exitCode": 1, "reason": "Error", "message": "m" * 4000, "x": "y"}}
STARTED = {"running": {"startedAt": "2026-11-27T00:00:01Z"}}


def large_pod() -> dict[str, Any]:
    """Return a pod that has as much of everything as the API server stores."""
    ports = [{"name": f"p{at}", "containerPort": at, "protocol": "TCP"} for at in range(1000)]
    server = {
        "name": "server",
        "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}, *ports],
        "args": ["--max-num-seqs", "64"],
        "env": [{"name": "A", "value": "x" * 32_000}],
    }
    other = {"name": "other", "args": ["x"] * 4000, "ports": ports}
    status = {"name": "server", "restartCount": 1, "containerID": "c", "image": "i" * 900}
    status |= {"state": STARTED, "lastState": ENDED}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-27T00:00:02Z"}
    return {
        "metadata": METADATA,
        "spec": {
            "containers": [server, *([other] * 900)],
            "readinessGates": [*({"conditionType": f"x/{at}"} for at in range(900)), GATE],
            "nodeSelector": TEXTS,
            "volumes": [{}] * 900,
            "nodeName": "n",
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "conditions": [ready, *([ready | {"message": "m" * 2000}] * 900)],
            "containerStatuses": [status] * 900,
        },
    }


GATE = {"conditionType": names.WARM_GATE}


def test_large_pod_keeps_what_is_read() -> None:
    pod, kept = large_pod(), kept_parts("Pod", large_pod())
    assert len(json.dumps(pod)) > 1_000_000
    assert len(json.dumps(kept)) < 40_000
    assert kept["metadata"]["labels"] == kept["metadata"]["annotations"]
    assert kept["metadata"]["labels"].keys() == READ_OF_PODS
    assert kept["metadata"].items() >= IDENTITY.items()
    assert kept["metadata"]["ownerReferences"] == [OWNER | {"controller": True}]
    (seen,) = observe([kept], now_s=0.0, warmup_timeout_s=1.0, replicas=1)
    assert (seen.port, seen.arguments, seen.gated) == (8000, ("--max-num-seqs", "64"), True)
    assert ready_pod(kept) is not None


def usual_pod() -> dict[str, Any]:
    """Return a pod as the operator makes it."""
    pod = large_pod()
    pod["spec"]["containers"] = pod["spec"]["containers"][:1]
    pod["spec"]["readinessGates"] = [GATE]
    status = pod["status"]
    status |= {key: status[key][:1] for key in ("conditions", "containerStatuses")}
    status["containerStatuses"][0]["lastState"] = {}
    return pod


def test_usual_pod_reads_as_the_whole_one() -> None:
    pod = usual_pod()
    kept = kept_parts("Pod", usual_pod())
    terms = {"now_s": 0.0, "warmup_timeout_s": 1.0, "replicas": 1}
    assert observe([kept], **terms) == observe([pod], **terms)  # type: ignore[arg-type]
    assert gate.read(kept, 8000) == gate.read(pod, 8000)
    assert ready_pod(kept) == ready_pod(pod)


def starting_pod(ready: str) -> dict[str, Any]:
    """Return a pod with a sidecar and a probe, whose containers run."""
    pod = usual_pod()
    probe = {"httpGet": {"port": 8000, "path": "/nope", "httpHeaders": [TEXTS]}, "periodSeconds": 5}
    pod["spec"]["containers"][0] |= {"startupProbe": probe}
    pod["spec"]["initContainers"] = [{"name": "proxy", "restartPolicy": "Always", "env": [TEXTS]}]
    placed = {
        "type": "PodScheduled",
        "status": "True",
        "lastTransitionTime": "2026-11-27T00:00:00Z",
    }
    status = pod["status"]
    status["conditions"] = [status["conditions"][0] | {"status": ready}, placed]
    status["containerStatuses"][0] |= {"ready": False, "started": False, "restartCount": 0}
    status["initContainerStatuses"] = [{"name": "proxy", "state": STARTED, "restartCount": 0}]
    return pod


def test_starting_pod_keeps_what_says_why_it_is_not_ready() -> None:
    """A sidecar runs on and is not what the pod waits for; its server has not passed a probe."""
    terms: dict[str, Any] = {"now_s": epoch_s("2026-11-27T00:05:00Z"), "warmup_timeout_s": 600.0}
    kept = kept_parts("Pod", starting_pod("False"))
    (seen,) = observe([kept], **terms, replicas=1)
    assert "has not passed its startup probe (GET /nope at port 8000) " in seen.pod.detail
    assert len(json.dumps(kept)) < 5000
    ready = kept_parts("Pod", starting_pod("True"))
    assert "startupProbe" not in ready["spec"]["containers"][0], "3000 pods are ready, few are not"


@pytest.mark.parametrize(
    "pod",
    [
        {"metadata": {"name": "p"}},
        {"metadata": {"name": "p"}, "spec": {}, "status": {}},
        {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "server"}]}},
    ],
)
def test_what_a_pod_lacks_is_not_made_up(pod: dict[str, Any]) -> None:
    assert kept_parts("Pod", pod) == pod


def test_autoscaler_keeps_its_target_and_its_owner() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "s"}
    metrics = [{"type": "Resource", "resource": TEXTS}] * 100
    one = {"metadata": METADATA, "spec": {"scaleTargetRef": target, "metrics": metrics}}
    kept = kept_parts("HorizontalPodAutoscaler", one)
    assert len(json.dumps(kept)) < 1000
    assert (scaled_by(kept), named(kept)) == (scaled_by(one), named(one))


def test_slice_keeps_its_port_and_a_few_endpoints() -> None:
    owner: dict[str, Any] = {
        "apiVersion": "headroom.dev/v1alpha1",
        "kind": "InferenceService",
        "name": "s",
    }
    owner |= {"uid": "s", "controller": True}
    label = {"kubernetes.io/service-name": "s"}
    ready = {"addresses": ["10.0.0.1"], "conditions": {"ready": True}}
    one: dict[str, Any] = {
        "metadata": METADATA | {"labels": TEXTS | label, "ownerReferences": [owner]},
        "endpoints": [*([{"addresses": ["10.0.0.2"], "hints": TEXTS}] * 999), ready],
        "ports": [{"port": 20_001}] * 100,
    }
    kept = kept_parts("EndpointSlice", one)
    assert len(json.dumps(kept)) < 2000
    assert kept["endpoints"][0] == ready
    services = {"s": {"metadata": IDENTITY | {"name": "s", "uid": "s"}}}
    found = read([kept], services)["s"]
    assert (found.port, found.service_name, found.addresses[0]) == (20_001, "s", "10.0.0.1")
