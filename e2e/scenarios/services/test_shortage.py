"""Fewer accelerators than requested, on a real node."""

from __future__ import annotations

import time

import pytest

from cluster import Cluster
from scenarios.world import Service, emulated, install_operator

pytestmark = pytest.mark.clock


@pytest.fixture(scope="module", autouse=True)
def operator(cluster: Cluster) -> None:
    install_operator(cluster)


def test_missing_gpus_are_reported_and_create_no_more_pods(
    cluster: Cluster, namespace: str
) -> None:
    manifest = emulated(
        "hungry",
        scaling={"minReplicas": 3},
        accelerator={"resource": "nvidia.com/gpu", "count": 4},
    )
    service = Service.create(cluster, namespace, manifest)
    service.wait(
        "unschedulable reported", lambda: service.status().get("unschedulableReplicas") == 1, 60
    )
    service.wait("the others ready", lambda: service.ready_replicas() == 2)
    time.sleep(6)
    assert service.replicas() == 3
    assert len(service.pods()) == 3
    condition = service.condition("CapacityAvailable")
    assert condition["status"] == "False"
    assert "nvidia.com/gpu" in condition["message"]


@pytest.mark.timeout(300, func_only=True)
def test_last_gpus_go_to_higher_priority_above_every_min_replicas(
    cluster: Cluster, namespace: str
) -> None:
    """Two replicas fit on the node: 8 GPUs, 4 for each."""
    cluster.kubectl("label", "namespace", namespace, "headroom.dev/max-priority=10")
    gpus = {"resource": "nvidia.com/gpu", "count": 4}
    slow = {"stabilizationWindow": "10m"}
    scaling = {"minReplicas": 2, "scaleDown": slow}
    low = Service.create(cluster, namespace, emulated("low", scaling=scaling, accelerator=gpus))
    low.wait_ready(90)
    low.wait("both ready", lambda: low.ready_replicas() == 2)
    scaling["minReplicas"] = 1
    Service.create(cluster, namespace, emulated("low", scaling=scaling, accelerator=gpus))
    scaling = {"minReplicas": 1, "priority": 10}
    high = Service.create(cluster, namespace, emulated("high", scaling=scaling, accelerator=gpus))
    high.wait("unschedulable reported", lambda: high.status().get("unschedulableReplicas") == 1, 30)
    assert low.replicas() == 2
    high.wait_ready(120)
    assert (low.replicas(), low.ready_replicas()) == (1, 1)
    scaled = low.event("ScaledDown")["note"]
    assert "YieldedToPriority" in scaled
    assert f"{namespace}/high (priority 10) gets the last accelerators" in scaled
    claimed = high.event("PreemptingLowerPriority")["note"]
    assert claimed == f"{namespace}/low (priority 0) yields 1"
