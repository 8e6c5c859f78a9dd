"""From one replica to none and back, on a real node: who asks meanwhile is held and answered."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest

from cluster import Cluster, Node, shipped
from cluster.layout import Cache
from cluster.progress import OnConsole
from load.outcomes import input_of, is_right, question
from scenarios.world import ROOT, SYSTEM, Service, emulated

OVERLAY = ROOT / "deploy" / "overlays" / "local-gateway"
DEPLOYMENTS = ("headroom-operator", "headroom-gateway", "headroom-activator")
CLIENTS = 40


@pytest.fixture(scope="module", autouse=True)
def gateways(cluster: Cluster) -> Iterator[None]:
    """The operator, gateways and activators as they ship, with images made on this machine."""
    if isinstance(cluster, Node):
        shipped.build(Cache.of_this_user(), [shipped.GATEWAY], OnConsole())
        cluster.load(shipped.GATEWAY.image)
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(OVERLAY))
    for name in DEPLOYMENTS:
        words = ("rollout", "status", f"deployment/{name}", "--namespace", SYSTEM)
        cluster.kubectl(*words, "--timeout=90s")
    yield
    gone = ("delete", "deployment", *DEPLOYMENTS[1:], "--namespace", SYSTEM)
    cluster.kubectl(*gone, "--wait=false")


@pytest.fixture
def service(cluster: Cluster, namespace: str) -> Service:
    env = {"HEADROOM_EMULATED_FIXED_COST_S": "0.02", "HEADROOM_EMULATED_PER_ITEM_COST_S": "0.001"}
    manifest = emulated(
        "sleeper",
        env=env,
        scaling={"minReplicas": 0, "maxReplicas": 2, "zero": {"idleFor": "10s"}},
        routing={"mode": "Gateway"},
    )
    service = Service.create(cluster, namespace, manifest)
    service.wait_ready()
    return service


@pytest.mark.timeout(300, func_only=True)
def test_the_last_replica_goes_when_nobody_asks_and_the_first_request_brings_it_back(
    service: Service,
) -> None:
    cluster = service.cluster
    with cluster.forward(f"service/{service.name}", 80, service.namespace) as endpoint:
        about = f"{endpoint.url}/v2/models/{service.name}"
        with urllib.request.urlopen(about, timeout=60) as answer:
            tensor, size = input_of(json.load(answer))
        service.wait("no replica", lambda: service.replicas() == 0, 60)
        service.wait("all pods gone", lambda: not service.pods(), 30)
        assert service.condition("Ready")["status"] == "True"

        def ask(number: int) -> float:
            body = json.dumps(question(number, size, tensor)).encode()
            request = urllib.request.Request(f"{about}/infer", data=body)
            request.add_header("Content-Type", "application/json")
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert is_right(number, size, json.load(answer))
            return time.time()

        with ThreadPoolExecutor(CLIENTS) as clients:
            answered_s = list(clients.map(ask, range(CLIENTS)))
    (pod,) = service.pods()
    ready = next(c for c in pod["status"]["conditions"] if c["type"] == "Ready")
    ready_s = datetime.fromisoformat(ready["lastTransitionTime"]).timestamp()
    # The kubelet writes whole seconds, rounded down.
    assert min(answered_s) - ready_s < 2.0
    assert service.replicas() == 1
