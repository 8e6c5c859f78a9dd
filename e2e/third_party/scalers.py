"""Autoscalers of the Deployment: Headroom, KEDA, a HorizontalPodAutoscaler, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from cluster import Node, wait_until
from third_party import keda, metrics_api
from third_party.clients import TARGET_S
from third_party.workload import MAX_BATCH_SIZE, Workload

MIN_REPLICAS, MAX_REPLICAS = 2, 10
IN_FLIGHT_PER_REPLICA = MAX_BATCH_SIZE
"""Running and waiting requests for which the peers ask one replica: a full batch."""
PATIENCE_S = 90.0


class Scaler(Protocol):
    """Scales one Deployment of a namespace."""

    @property
    def name(self) -> str:
        """Its name in tables."""

    @property
    def replicas(self) -> int:
        """Replicas of the Deployment at the beginning."""

    def begin(self, node: Node, namespace: str, workload: Workload) -> str:
        """Take the Deployment over, wait until it is measured; return the clients' Service."""


@dataclass(frozen=True)
class Static:
    """Nothing scales it."""

    replicas: int = 4

    @property
    def name(self) -> str:
        """Its name in tables."""
        return f"static {self.replicas}"

    def begin(self, node: Node, namespace: str, workload: Workload) -> str:
        """Leave it."""
        return workload.name


@dataclass(frozen=True)
class Headroom:
    """The shipped operator with its defaults; with `routing`, not those of this field."""

    name: str = "Headroom"
    replicas: int = MIN_REPLICAS
    routing: Mapping[str, Any] = field(default_factory=dict)
    target_s: float = TARGET_S

    def begin(self, node: Node, namespace: str, workload: Workload) -> str:
        """Apply the InferenceService."""
        one = workload.inference_service(
            target=f"{1000 * self.target_s:g}ms", minimum=MIN_REPLICAS, most=MAX_REPLICAS
        )
        one["metadata"]["namespace"] = namespace
        if self.routing:
            one["spec"]["routing"] = dict(self.routing)
        node.apply(one)
        path = f"/apis/headroom.dev/v1alpha1/namespaces/{namespace}/inferenceservices"

        def measured() -> bool:
            status = node.raw.ask("GET", f"{path}/{workload.name}").get("status", {})
            fresh = status.get("signals", {}).get("freshness") == "Fresh"
            if not (status.get("decision") and fresh):
                return False
            return not self.routing or _is(status, "RoutingReady", "ViaGateway")

        wait_until(measured, what="Headroom measures the pods", timeout_s=PATIENCE_S, every_s=0.5)
        return f"{workload.name}-gateway" if self.routing else workload.name


@dataclass(frozen=True)
class Keda:
    """KEDA's Prometheus scaler on running and waiting requests; its HPA keeps all defaults."""

    name: str = "KEDA"
    replicas: int = MIN_REPLICAS

    def begin(self, node: Node, namespace: str, workload: Workload) -> str:
        """Apply the ScaledObject, and wait for its HPA to read the metric."""
        query = (
            f'sum(sleeping_requests_waiting{{namespace="{namespace}"}} + '
            f'sleeping_requests_running{{namespace="{namespace}"}})'
        )
        trigger = {
            "type": "prometheus",
            "metadata": {
                "serverAddress": keda.PROMETHEUS_URL,
                "query": query,
                "threshold": str(IN_FLIGHT_PER_REPLICA),
            },
        }
        node.apply(
            {
                "apiVersion": "keda.sh/v1alpha1",
                "kind": "ScaledObject",
                "metadata": {"name": workload.name, "namespace": namespace},
                "spec": {
                    "scaleTargetRef": {"name": workload.name},
                    "minReplicaCount": MIN_REPLICAS,
                    "maxReplicaCount": MAX_REPLICAS,
                    "triggers": [trigger],
                },
            }
        )
        _wait_for_hpa(node, namespace, f"keda-hpa-{workload.name}")
        return workload.name


@dataclass(frozen=True)
class Hpa:
    """An HPA of autoscaling/v2 on running and waiting requests per pod, with all its defaults."""

    name: str = "HPA"
    replicas: int = MIN_REPLICAS

    def begin(self, node: Node, namespace: str, workload: Workload) -> str:
        """Apply it, and wait until it reads the metric."""
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload.name}
        metric = {
            "type": "Pods",
            "pods": {
                "metric": {"name": metrics_api.IN_FLIGHT},
                "target": {"type": "AverageValue", "averageValue": str(IN_FLIGHT_PER_REPLICA)},
            },
        }
        node.apply(
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": workload.name, "namespace": namespace},
                "spec": {
                    "scaleTargetRef": target,
                    "minReplicas": MIN_REPLICAS,
                    "maxReplicas": MAX_REPLICAS,
                    "metrics": [metric],
                },
            }
        )
        _wait_for_hpa(node, namespace, workload.name)
        return workload.name


def _is(status: Mapping[str, Any], kind: str, reason: str) -> bool:
    found = status.get("conditions", ())
    return any((one["type"], one["reason"]) == (kind, reason) for one in found)


def _wait_for_hpa(node: Node, namespace: str, name: str) -> None:
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    seen: list[Any] = []

    def active() -> bool:
        found = [
            one for one in node.raw.ask("GET", path)["items"] if one["metadata"]["name"] == name
        ]
        seen[:] = [each for one in found for each in one.get("status", {}).get("conditions", ())]
        return any((one["type"], one["status"]) == ("ScalingActive", "True") for one in seen)

    try:
        wait_until(active, what=f"{name} reads its metric", timeout_s=PATIENCE_S, every_s=0.5)
    except Exception as error:
        error.add_note(str(seen))
        raise


SCALERS: dict[str, Scaler] = {
    "headroom": Headroom(),
    "gateway": Headroom(name="Headroom, gateway", routing={"mode": "Gateway"}),
    "keda": Keda(),
    "hpa": Hpa(),
    "static": Static(),
}
