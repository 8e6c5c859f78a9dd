"""Replicas under load, under shortage and under faults, on a real node."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cluster import Cluster
from load.outcomes import Outcome
from scenarios.world import OPERATOR, SYSTEM, Service, emulated, install_operator


@pytest.fixture(scope="module", autouse=True)
def operator(cluster: Cluster) -> None:
    install_operator(cluster)


@pytest.mark.timeout(300, func_only=True)
def test_load_up_load_down_and_no_request_lost(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    service = Service.create(cluster, namespace, emulated("wave", scaling={"minReplicas": 2}))
    service.wait_ready()
    service.wait("both replicas", lambda: service.ready_replicas() == 2)
    with service.load(16.0, 30, tmp_path) as load:
        service.wait("scaled up", lambda: service.replicas() >= 3)
        decision = service.status()["decision"]
        summary = load.finish()
    # Up for the arrivals, which two replicas can just carry: the queue bound (4 per replica)
    # had nothing to say.
    assert decision["reason"] in {"Burst", "LatencyModel", "UtilizationCeiling", "ReplicasWarming"}
    assert summary.tally.outcomes[Outcome.OK] == summary.requests

    risen, ended_s = service.replicas(), time.monotonic()
    with service.load(5.0, 45, tmp_path) as trickle:
        service.wait("scaled down", lambda: service.replicas() < risen, 60)
        assert time.monotonic() - ended_s >= 15  # the hold is 20 s, from the last wish for more
        service.wait("back at the minimum", lambda: service.replicas() == 2, 60)
        summary = trickle.finish()
    assert summary.tally.outcomes[Outcome.OK] == summary.requests
    assert service.replicas() == 2


def test_missing_gpus_are_reported_and_not_multiplied(cluster: Cluster, namespace: str) -> None:
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
    time.sleep(10)
    assert service.replicas() == 3
    assert len(service.pods()) == 3
    condition = service.condition("CapacityAvailable")
    assert condition["status"] == "False"
    assert "nvidia.com/gpu" in condition["message"]


@pytest.mark.timeout(300, func_only=True)
def test_the_last_gpus_go_to_the_higher_priority_and_no_floor_is_taken(
    cluster: Cluster, namespace: str
) -> None:
    """Two replicas fit on the node: 8 GPUs, 4 for each."""
    gpus = {"resource": "nvidia.com/gpu", "count": 4}
    slow = {"stabilizationWindow": "10m"}
    scaling = {"minReplicas": 2, "scaleDown": slow}
    low = Service.create(cluster, namespace, emulated("low", scaling=scaling, accelerator=gpus))
    low.wait("both ready", lambda: low.ready_replicas() == 2, 90)
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
    claimed = high.event("PriorityClaimed")["note"]
    assert claimed == f"{namespace}/low (priority 0) yields 1"


def test_a_model_that_never_gets_warm_is_broken_and_harms_nobody(
    cluster: Cluster, namespace: str
) -> None:
    neighbour = Service.create(cluster, namespace, emulated("neighbour"))
    manifest = emulated("never-warm", warmup={"requests": 4, "maxLatency": "10ms", "timeout": "5s"})
    service = Service.create(cluster, namespace, manifest)
    service.wait("broken", lambda: service.status().get("brokenReplicas") == 1, 60)
    assert service.condition("Ready")["status"] == "False"
    assert service.condition("CapacityAvailable")["status"] == "False"
    assert service.replicas() == 1
    neighbour.wait_ready()
    assert not any(
        status.get("ready")
        for pod in service.pods()
        for status in pod["status"]["containerStatuses"]
    )


def test_an_operator_restarted_in_mid_run_changes_no_replicas(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    service = Service.create(cluster, namespace, emulated("calm"))
    service.wait_ready()
    with service.load(18.0, 55, tmp_path) as load:
        service.wait("scaled up", lambda: service.replicas() >= 3)
        time.sleep(6)
        standing, generation = service.replicas(), service.deployment()["metadata"]["generation"]
        selector = f"app.kubernetes.io/name={OPERATOR}"
        cluster.kubectl("delete", "pod", "--namespace", SYSTEM, "-l", selector)
        install_operator(cluster)
        cluster.kubectl(*("rollout", "status", f"deployment/{OPERATOR}", "--namespace", SYSTEM))
        before = service.status()["decision"]["time"]
        service.wait("decisions again", lambda: service.status()["decision"]["time"] != before, 80)
        assert service.replicas() == standing
        assert service.deployment()["metadata"]["generation"] == generation
        summary = load.finish()
    assert summary.tally.outcomes[Outcome.LOST] == 0
