"""The third-party servers: image, workload, InferenceService and request of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cluster.images.shipped import Shipped

MAX_BATCH_SIZE = 4
PORT = 8000
COLD_REQUESTS = 3
WARMUP_REQUESTS = 6
MAX_LATENCY = "600ms"
"""A batch of one takes 210 ms, a cold one 1.4 s."""
_OPEN_INFERENCE = json.dumps(
    {"inputs": [{"name": "x", "datatype": "FP64", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
)


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One server."""

    name: str
    """Name of its profile and its requirements."""
    path: str
    body: str
    warmup: Mapping[str, Any] = field(default_factory=dict)
    metrics_port: int = PORT
    ready_path: str = "/v2/health/ready"
    answer: bytes = b"10"
    """In each right answer."""
    cold_requests: int = COLD_REQUESTS
    """Requests before those of the warm-up that are slow at first."""
    max_latency: str = MAX_LATENCY
    drain_s: int = 0
    """Seconds for which a pod that leaves still answers, as its owner lets it."""
    start_s: float = 60.0
    """Within which a pod must be warm."""
    slo: Mapping[str, Any] = field(default_factory=lambda: {"latency": {"target": "2s"}})

    @property
    def image(self) -> Shipped:
        """Its image."""
        return Shipped(
            f"localhost/third-party-{self.name}:dev",
            "e2e/third_party/Dockerfile",
            {"PEER": self.name},
        )

    def deployment(self, name: str, *, gated: bool = True) -> dict[str, Any]:
        """Return the workload as its owner would write it, with what warm-up needs."""
        labels = {"app": name}
        worn = {"headroom.dev/warmed-for": name} if gated else {}
        ready = {"httpGet": {"path": self.ready_path, "port": PORT}, "periodSeconds": 1}
        container = {
            "name": "model",
            "image": self.image.image,
            "ports": [{"containerPort": PORT}, {"containerPort": self.metrics_port}][
                : 1 + (self.metrics_port != PORT)
            ],
            "readinessProbe": ready | {"failureThreshold": 3},
        }
        if self.drain_s:
            container["lifecycle"] = {"preStop": {"sleep": {"seconds": self.drain_s}}}
        spec: dict[str, Any] = {
            "containers": [container],
            "terminationGracePeriodSeconds": 5 + self.drain_s,
        }
        if gated:
            spec["readinessGates"] = [{"conditionType": "headroom.dev/warm"}]
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                "template": {"metadata": {"labels": labels | worn}, "spec": spec},
            },
        }

    def service(self, name: str) -> dict[str, Any]:
        """Return the Service that leads to its pods."""
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": PORT}]},
        }

    def inference_service(self, name: str) -> dict[str, Any]:
        """Return the InferenceService that adopts the workload."""
        return {
            "apiVersion": "headroom.dev/v1alpha1",
            "kind": "InferenceService",
            "metadata": {"name": name},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                "runtime": {
                    "profile": self.name,
                    "port": PORT,
                    "metricsPort": self.metrics_port,
                    "maxBatchSize": MAX_BATCH_SIZE,
                },
                "model": {"name": "model"},
                "warmup": {
                    **self.warmup,
                    "requests": WARMUP_REQUESTS,
                    "maxLatency": self.max_latency,
                    "timeout": "60s",
                },
                "slo": dict(self.slo),
                "scaling": {"maxReplicas": 3, "scaleDown": {"stabilizationWindow": "5m"}},
            },
        }


_MOSEC_REQUEST = {"path": "/inference", "body": '{"x": [1, 2, 3, 4]}'}
MOSEC = Peer(
    name="mosec",
    path=_MOSEC_REQUEST["path"],
    body=_MOSEC_REQUEST["body"],
    warmup={"request": _MOSEC_REQUEST},
    ready_path="/",
)
MLSERVER = Peer(
    name="mlserver",
    path="/v2/models/model/infer",
    body=_OPEN_INFERENCE,
    warmup={"sender": "Operator"},
    metrics_port=8002,
)
TRITON = Peer(
    name="triton",
    path="/v2/models/model/infer",
    body=_OPEN_INFERENCE,
    warmup={"sender": "Operator"},
    metrics_port=8002,
)
COMPLETIONS = "/v1/completions"


def completion(tokens: int) -> str:
    """Return a request for this many tokens."""
    asked = {"model": "model", "prompt": "Tell me", "max_tokens": tokens, "ignore_eos": True}
    return json.dumps(asked)


_GENERATES: Mapping[str, Any] = {
    "path": COMPLETIONS,
    "body": completion(60),
    "warmup": {"sender": "Operator"},
    "answer": b'"completion_tokens":60',
    "ready_path": "/health",
    "cold_requests": 0,
    "max_latency": "10s",
    "drain_s": 3,
}
LLAMACPP = Peer(name="llamacpp", **_GENERATES)
DYNAMO = Peer(
    name="dynamo",
    metrics_port=9090,
    **{**_GENERATES, "warmup": {"request": {"path": COMPLETIONS, "body": completion(16)}}},
)
"""Dynamo's mocker: its scheduler and memory, with times instead of a model."""
