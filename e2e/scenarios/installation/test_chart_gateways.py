"""Gateways switched off and on again by Helm, under traffic, on a node."""

from __future__ import annotations

import time

import pytest

from chart.helm import Helm
from chart.paths import CHART
from cluster import Cluster
from scenarios.gateway.gateways import GATEWAY, Traffic, addresses, led_to
from scenarios.gateway.test_gateway_target import inference_service, own_service, workload
from scenarios.installation.local_images import GATEWAY_IMAGE, OPERATOR_IMAGE
from scenarios.world import SYSTEM, Service, emulated

pytestmark = pytest.mark.clock

RELEASE = ("upgrade", "--install", "headroom", CHART, "--namespace", SYSTEM, "--wait")
SWITCHED_WITHIN_S = 40.0


@pytest.fixture(scope="module")
def cluster(own_node: Cluster) -> Cluster:
    return own_node


def switch(helm: Helm, *, on: bool) -> None:
    """Upgrade the release to have gateways, or none."""
    values = {"image": OPERATOR_IMAGE, "gateway": {"image": GATEWAY_IMAGE, "enabled": on}}
    helm(*RELEASE, "--create-namespace", "--timeout", "90s", values=values)


def behind(service: Service, name: str) -> bool:
    """Return whether a Service leads to gateways and to nothing else."""
    gates = addresses(service.cluster, SYSTEM, f"app.kubernetes.io/name={GATEWAY}")
    led = led_to(service, name)
    return bool(led) and led <= gates


@pytest.mark.timeout(400, func_only=True)
def test_gateways_switched_off_and_on_again_under_load_lose_no_request(
    cluster: Cluster, own_helm: Helm, namespace: str
) -> None:
    switch(own_helm, on=True)
    env = {"HEADROOM_EMULATED_FIXED_COST_S": "0.1"}
    scaling = {"minReplicas": 2, "maxReplicas": 2}
    routed = {"mode": "Gateway"}
    owned = Service.create(
        cluster, namespace, emulated("own", env=env, scaling=scaling, routing=routed)
    )
    for theirs in (workload("Deployment", "llm"), own_service("Deployment", "llm")):
        cluster.apply({**theirs, "metadata": {**theirs["metadata"], "namespace": namespace}})
    manifest = inference_service("Deployment", "llm")
    manifest["spec"]["routing"] = routed
    target = Service.create(cluster, namespace, manifest)
    both = ((owned, "own"), (target, "llm-gateway"))
    for service, name in both:
        service.wait_ready(90)
        service.wait("behind a gateway", lambda: behind(service, name), SWITCHED_WITHIN_S)  # noqa: B023

    with (
        Traffic.through(owned, clients=1) as one,
        Traffic.through(target, "llm-gateway", clients=1) as other,
    ):
        for on in (False, True, False):
            answered = len(one.right), len(other.right)
            switch(own_helm, on=on)
            for service, name in both:
                service.wait(
                    f"gateways: {on}",
                    lambda: behind(service, name) is on,  # noqa: B023
                    SWITCHED_WITHIN_S,
                )
            time.sleep(10)  # the gateways end meanwhile
            print(f"on: {on}; answered {len(one.right)} and {len(other.right)}")
            assert len(one.right) > answered[0] + 20
            assert len(other.right) > answered[1] + 20
    print(one.said, other.said)
    assert not one.said
    assert not other.said
