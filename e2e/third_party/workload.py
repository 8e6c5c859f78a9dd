"""An existing Deployment of a third party's server, and the InferenceService that adopts it.

The server's script is a ConfigMap, its image any with Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.images.builds import BASE_IMAGE

NAME = "ranker"
"""Name of the Deployment of a step, unless a scenario gives another."""
SCRIPT = Path(__file__).with_name("sleeping_server.py")
PORT = 8000
MAX_BATCH_SIZE = 8
METRICS = {
    "waiting": {"name": "sleeping_requests_waiting"},
    "running": {"name": "sleeping_requests_running"},
    "arrived": {"name": "sleeping_requests_total"},
    "latency": {"name": "sleeping_request_seconds"},
    "batches": {"name": "sleeping_batches_total"},
    "batchRequests": {"name": "sleeping_batch_requests_total"},
    "batchTime": {"name": "sleeping_batch_seconds_total"},
}


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A Deployment, its Service, and what is promised for it."""

    name: str
    replicas: int = 2
    load_s: float = 10.0
    fixed_cost_s: float = 0.02
    per_item_cost_s: float = 0.01
    connection_requests: int = 0
    """Requests after which the server closes a connection; 0: never."""

    @property
    def full_batch_rps(self) -> float:
        """Requests per second of one replica whose batches are full."""
        return MAX_BATCH_SIZE / (self.fixed_cost_s + MAX_BATCH_SIZE * self.per_item_cost_s)

    def manifests(self) -> list[dict[str, Any]]:
        """Return what its owner applies."""
        labels = {"app": self.name}
        return [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": self.name},
                "data": {"server.py": SCRIPT.read_text(encoding="utf-8")},
            },
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": self.name},
                "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": PORT}]},
            },
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": self.name},
                "spec": {
                    "replicas": self.replicas,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": self._pod()},
                },
            },
        ]

    def inference_service(self, *, target: str, minimum: int, most: int) -> dict[str, Any]:
        """Return the object that has Headroom scale the Deployment."""
        return {
            "apiVersion": "headroom.dev/v1alpha1",
            "kind": "InferenceService",
            "metadata": {"name": self.name},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.name},
                "runtime": {
                    "profile": "custom",
                    "port": PORT,
                    "maxBatchSize": MAX_BATCH_SIZE,
                    "metrics": METRICS,
                },
                "slo": {"latency": {"percentile": 95, "target": target}},
                "scaling": {"minReplicas": minimum, "maxReplicas": most},
            },
        }

    def _pod(self) -> dict[str, Any]:
        variables = {
            "LOAD_S": self.load_s,
            "FIXED_COST_S": self.fixed_cost_s,
            "PER_ITEM_COST_S": self.per_item_cost_s,
            "MAX_BATCH_SIZE": MAX_BATCH_SIZE,
            "CONNECTION_REQUESTS": self.connection_requests,
        }
        container = {
            "name": "model",
            "image": BASE_IMAGE,
            "command": ["python3", "-u", "/server/server.py"],
            "env": [{"name": key, "value": f"{value:g}"} for key, value in variables.items()],
            "ports": [{"containerPort": PORT}],
            "readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1},
            "resources": {"requests": {"cpu": "20m"}},
            "volumeMounts": [{"name": "server", "mountPath": "/server"}],
        }
        return {
            "terminationGracePeriodSeconds": 8,
            "containers": [container],
            "volumes": [{"name": "server", "configMap": {"name": self.name}}],
        }
