"""Existing workloads behind the gateway on a real node: an additional Service, theirs unchanged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from cluster import Cluster
from scenarios.gateway.gateways import GATEWAY, Traffic, addresses, installed, led_to
from scenarios.world import SERVER_IMAGE, SYSTEM, Object, Service

pytestmark = pytest.mark.clock

SWITCHED_WITHIN_S = 30.0


@pytest.fixture(scope="module", autouse=True)
def gateways(cluster: Cluster) -> Iterator[None]:
    """The operator, gateways and activators as they ship."""
    with installed(cluster):
        yield


def workload(kind: str, name: str) -> dict[str, Any]:
    """Build what its creator would apply: two replicas that name no port."""
    variables = {
        "HEADROOM_ENGINE": "emulated",
        "HEADROOM_MODEL_NAME": name,
        "HEADROOM_MAX_BATCH_SIZE": "4",
        "HEADROOM_EMULATED_FIXED_COST_S": "0.03",
        "HEADROOM_EMULATED_PER_ITEM_COST_S": "0.005",
    }
    container = {
        "name": "server",
        "image": SERVER_IMAGE,
        "env": [{"name": key, "value": value} for key, value in variables.items()],
        "readinessProbe": {
            "httpGet": {"path": "/v2/health/ready", "port": 8000},
            "periodSeconds": 1,
        },
    }
    spec: dict[str, Any] = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 20},
        },
    }
    if kind == "StatefulSet":
        spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def own_service(kind: str, name: str) -> dict[str, Any]:
    """Build the Service that its creator has; a StatefulSet's is headless."""
    headless = {"clusterIP": "None"} if kind == "StatefulSet" else {}
    ports = [{"port": 8000, "targetPort": 8000}]
    spec = {"selector": {"app": name}, "ports": ports, **headless}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def inference_service(kind: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "headroom.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {
            "targetRef": {"kind": kind, "name": name},
            "accelerator": {"count": 0},
            "slo": {"latency": {"target": "1s"}},
            "scaling": {"minReplicas": 2, "maxReplicas": 2},
        },
    }


def theirs(service: Service) -> tuple[Object, Object]:
    """Read what their Service says, without what Kubernetes adds."""
    found = service.read("api/v1", f"services/{service.name}")
    return found["spec"], found["metadata"].get("ownerReferences")


@pytest.mark.timeout(300, func_only=True)
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_existing_workload_gets_the_gateway_and_is_left_as_it_was(
    cluster: Cluster, namespace: str, kind: str
) -> None:
    name, ours = "llm", "llm-gateway"
    manifests = (workload(kind, name), own_service(kind, name))
    for one in manifests:
        cluster.apply({**one, "metadata": {**one["metadata"], "namespace": namespace}})
    service = Service.create(cluster, namespace, inference_service(kind, name))
    service.wait_ready(60)
    gates = addresses(cluster, SYSTEM, f"app.kubernetes.io/name={GATEWAY}")
    before = theirs(service)

    _route(service, "Gateway")
    service.wait(
        "led to a gateway",
        lambda: led_to(service, ours) and led_to(service, ours) <= gates,
        SWITCHED_WITHIN_S,
    )
    with Traffic.through(service, ours) as traffic:
        service.wait("answers", lambda: len(traffic.right) > 20, 30)
        replicas = addresses(cluster, namespace, f"app={name}")
        assert led_to(service) == replicas
        victim = cluster.get("pods", "--namespace", namespace, "-l", f"app={name}")["items"][0]
        words = ("delete", "pod", victim["metadata"]["name"], "--namespace", namespace)
        cluster.kubectl(*words, "--grace-period=0", "--force")
        service.wait(
            "another replica",
            lambda: (
                len(addresses(cluster, namespace, f"app={name}") - {""}) == 2
                and service.status().get("readyReplicas") == 2
            ),
            60,
        )
        assert service.condition("RoutingReady")["reason"] == "ViaGateway"
        assert ours in service.condition("RoutingReady")["message"]

        _route(service, "Service")
        service.wait(
            "led to the replicas",
            lambda: led_to(service, ours) and led_to(service, ours).isdisjoint(gates),
            SWITCHED_WITHIN_S,
        )
        time.sleep(2)
    assert not traffic.said
    assert len(traffic.right) > 50

    cluster.kubectl("delete", "hisvc", name, "--namespace", namespace)
    service.wait(
        "the additional Service is gone",
        lambda: ours not in {one["metadata"]["name"] for one in _services(service)},
        30,
    )
    assert theirs(service) == before
    left = service.read("apis/apps/v1", f"{kind.lower()}s/{name}")
    assert left["spec"]["replicas"] == 2
    assert "deletionTimestamp" not in left["metadata"]


def _route(service: Service, mode: str) -> None:
    patch = f'{{"spec": {{"routing": {{"mode": "{mode}"}}}}}}'
    words = ("patch", "hisvc", service.name, "--type=merge", "-p", patch)
    service.cluster.kubectl(*words, "--namespace", service.namespace)


def _services(service: Service) -> list[Any]:
    return list(service.read("api/v1", "services")["items"])
