"""Gateway mode on a real node: switched on and off under load, and scaled to and from zero."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest

from cluster import Cluster, ClusterError
from load.outcomes import input_of, is_right, question
from scenarios.gateway.certificates import context, held, replace_all, secret, token
from scenarios.gateway.gateways import (
    ACTIVATOR,
    GATEWAY,
    OVERLAY,
    Traffic,
    addresses,
    installed,
    led_to,
)
from scenarios.world import OPERATOR, SYSTEM, Service, emulated

pytestmark = pytest.mark.clock

HOLDING = 40
"""Clients that ask while there is no replica."""


@pytest.fixture(scope="module", autouse=True)
def gateways(cluster: Cluster) -> Iterator[None]:
    """The operator, gateways and activators as they ship."""
    with installed(cluster):
        yield


@pytest.fixture
def service(cluster: Cluster, namespace: str) -> Service:
    env = {"HEADROOM_EMULATED_FIXED_COST_S": "0.03", "HEADROOM_EMULATED_PER_ITEM_COST_S": "0.005"}
    manifest = emulated("front", env=env, scaling={"minReplicas": 2, "maxReplicas": 2})
    service = Service.create(cluster, namespace, manifest)
    service.wait_ready()
    service.wait("both replicas", lambda: service.ready_replicas() == 2)
    return service


def route(service: Service, mode: str) -> None:
    patch = json.dumps({"spec": {"routing": {"mode": mode}}})
    words = ("patch", "hisvc", service.name, "--type=merge", "-p", patch)
    service.cluster.kubectl(*words, "--namespace", service.namespace)


def judged_at(service: Service) -> str | None:
    """Read where the percentile was measured, once one was."""
    signals = service.status().get("signals") or {}
    return (
        signals.get("latencySource") if "arrivalsPerSecond" in signals.get("gateway", {}) else None
    )


@pytest.fixture
def traffic(service: Service) -> Iterator[Traffic]:
    with Traffic.through(service) as traffic:
        yield traffic


@pytest.mark.timeout(300, func_only=True)
def test_gateway_switched_under_load_and_replica_killed_loses_no_request(
    service: Service, traffic: Traffic
) -> None:
    cluster = service.cluster
    replicas = addresses(
        cluster, service.namespace, f"headroom.dev/inference-service={service.name}"
    )
    gateways = addresses(cluster, SYSTEM, f"app.kubernetes.io/name={GATEWAY}")
    assert led_to(service) == replicas

    route(service, "Gateway")
    service.wait("led to a gateway", lambda: led_to(service) and led_to(service) <= gateways, 20)
    time.sleep(2)
    assert service.replicas() == 2

    killed = service.pods()[0]["metadata"]["name"]
    scope = ("--namespace", service.namespace)
    cluster.kubectl("delete", "pod", killed, *scope, "--grace-period=0", "--force")
    service.wait("another replica", lambda: service.ready_replicas() == 2, 60)
    service.wait("p95 as clients see it", lambda: judged_at(service) == "Gateway", 40)

    route(service, "Service")
    service.wait("led to the replicas", lambda: led_to(service).isdisjoint(gateways), 20)
    time.sleep(2)
    traffic.ended.set()
    assert not traffic.said
    assert len(traffic.right) > 50


def test_client_with_a_stolen_token_gets_nothing_without_the_certificate(
    cluster: Cluster,
) -> None:
    """Network reach and an activator's token are not enough, nor is a gateway's certificate."""
    bearer = token(cluster, ACTIVATOR)
    mine, other = (secret(cluster, f"{name}-tls") for name in (ACTIVATOR, GATEWAY))
    trusted = mine["ca.crt"]
    with cluster.forward("service/headroom-operator-xds", 18001, SYSTEM) as endpoint:
        assert held(endpoint, bearer, context(trusted)) == 0
        assert held(endpoint, bearer, context(trusted, other)) == 401
        assert held(endpoint, token(cluster, GATEWAY), context(trusted, mine)) == 401
        # With both, the reported address has to be that of the connection.
        assert held(endpoint, bearer, context(trusted, mine)) == 403
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(OVERLAY))
    assert secret(cluster, f"{ACTIVATOR}-tls") == mine
    account = f"--as=system:serviceaccount:{SYSTEM}:{OPERATOR}"
    for verb, what, allowed in (
        ("get", "secrets/headroom-ca", "yes"),
        ("get", "secrets", "no"),
        ("create", "secrets", "no"),
        ("update", "secrets/another", "no"),
    ):
        words = ("auth", "can-i", verb, what, account, "--namespace", SYSTEM)
        try:
            said = cluster.kubectl(*words)
        except ClusterError as error:  # "no" is exit status 1
            said = str(error)
        assert allowed in said.split(), (verb, what)


@pytest.mark.timeout(300, func_only=True)
def test_certificates_replaced_at_once_under_load_lose_no_request(
    service: Service, traffic: Traffic
) -> None:
    cluster = service.cluster
    gateways = addresses(cluster, SYSTEM, f"app.kubernetes.io/name={GATEWAY}")
    route(service, "Gateway")
    service.wait("led to a gateway", lambda: led_to(service) and led_to(service) <= gateways, 20)
    before = secret(cluster, f"{GATEWAY}-tls")
    replace_all(cluster)
    service.wait(
        "certificates of another CA",
        lambda: secret(cluster, f"{GATEWAY}-tls")["ca.crt"] != before["ca.crt"],
        60,
    )
    # The kubelet renews the files of a pod within two minutes, and at once when the pod changes.
    for name in (GATEWAY, ACTIVATOR):
        label = f"app.kubernetes.io/name={name}"
        words = ("annotate", "pods", "-l", label, "renewed=yes", "--namespace", SYSTEM)
        cluster.kubectl(*words)
    # Only a gateway that knows the new replicas can answer once all old ones are gone.
    for pod in service.pods():
        scope = ("--namespace", service.namespace)
        cluster.kubectl("delete", "pod", pod["metadata"]["name"], *scope)
        service.wait("another replica", lambda: service.ready_replicas() == 2, 60)
        time.sleep(3)
    answered = len(traffic.right)
    service.wait(
        "requests answered by new replicas", lambda: len(traffic.right) > answered + 20, 20
    )
    traffic.ended.set()
    assert not traffic.said
    assert addresses(cluster, SYSTEM, f"app.kubernetes.io/name={GATEWAY}") == gateways


@pytest.fixture
def sleeper(cluster: Cluster, namespace: str) -> Service:
    env = {"HEADROOM_EMULATED_FIXED_COST_S": "0.02", "HEADROOM_EMULATED_PER_ITEM_COST_S": "0.001"}
    manifest = emulated(
        "sleeper",
        env=env,
        scaling={"minReplicas": 0, "maxReplicas": 2, "scaleToZero": {"idleTimeout": "10s"}},
        routing={"mode": "Gateway"},
    )
    service = Service.create(cluster, namespace, manifest)
    service.wait_ready()
    return service


@pytest.mark.timeout(300, func_only=True)
def test_scale_to_zero_when_idle_and_back_on_the_first_request(
    sleeper: Service,
) -> None:
    name = f"service/{sleeper.name}"
    with sleeper.cluster.forward(name, 80, sleeper.namespace) as endpoint:
        about = f"{endpoint.url}/v2/models/{sleeper.name}"
        with urllib.request.urlopen(about, timeout=60) as answer:
            tensor, size = input_of(json.load(answer))
        sleeper.wait("no replica", lambda: sleeper.replicas() == 0, 60)
        sleeper.wait("all pods gone", lambda: not sleeper.pods(), 30)
        assert sleeper.condition("Ready")["status"] == "True"

        def ask(number: int) -> float:
            body = json.dumps(question(number, size, tensor)).encode()
            request = urllib.request.Request(f"{about}/infer", data=body)
            request.add_header("Content-Type", "application/json")
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert is_right(number, size, json.load(answer))
            return time.time()

        with ThreadPoolExecutor(HOLDING) as clients:
            answered_s = list(clients.map(ask, range(HOLDING)))
    (pod,) = sleeper.pods()
    ready = next(c for c in pod["status"]["conditions"] if c["type"] == "Ready")
    ready_s = datetime.fromisoformat(ready["lastTransitionTime"]).timestamp()
    # The kubelet writes whole seconds, rounded down.
    assert min(answered_s) - ready_s < 2.0
    assert sleeper.replicas() == 1
