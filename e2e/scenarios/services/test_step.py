"""A step of load on an existing Deployment whose clients keep their connections."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cluster import Cluster, Node, wait_until
from scenarios.world import install_operator
from third_party.clients import Clients, Step, sending
from third_party.scalers import Headroom
from third_party.step import deploy
from third_party.workload import NAME, Workload

pytestmark = pytest.mark.clock

SLOW = Workload(name=NAME, fixed_cost_s=0.08, per_item_cost_s=0.04)
"""A quarter of the rate of the measured step, 20/s for each replica: the machine is shared."""
STEP = Step(low_rps=10.0, high_rps=60.0, before_s=20, high_s=40, after_s=1)
NEEDED = 4
"""Replicas for 60/s: three would be full."""
REQUESTED_WITHIN_S = 20.0


@pytest.fixture(scope="module", autouse=True)
def operator(cluster: Cluster) -> None:
    """The operator as it ships."""
    install_operator(cluster)


def test_step_behind_kept_connections_requests_needed_replicas_within_twenty_seconds(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """64 connections hide the demand: a client sends no more than it gets back."""
    if not isinstance(cluster, Node):
        pytest.skip("the load runs inside the network of a local node")
    service = deploy(cluster, namespace, Headroom(target_s=1.0), SLOW)
    address = cluster.get("service", service, "--namespace", namespace)["spec"]["clusterIP"]
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{NAME}"

    def requested() -> bool:
        return bool(cluster.raw.ask("GET", path)["spec"]["replicas"] >= NEEDED)

    with sending(
        cluster, f"http://{address}", NAME, STEP, Clients(), tmp_path, target_s=1.0
    ) as running:
        wait_until(
            requested,
            what=f"{NEEDED} replicas are requested",
            timeout_s=STEP.before_s + REQUESTED_WITHIN_S,
            every_s=0.5,
        )
        after_s = time.time() - running.began_s - STEP.before_s
    assert 0.0 < after_s <= REQUESTED_WITHIN_S
