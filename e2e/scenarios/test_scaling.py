"""Replicas under load and under faults, on a real node."""

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
    scaling = {"minReplicas": 2, "scaleDown": {"stabilizationWindow": "10s"}}
    service = Service.create(cluster, namespace, emulated("wave", scaling=scaling))
    service.wait_ready()
    service.wait("both replicas", lambda: service.ready_replicas() == 2)
    # Two replicas carry 4 / (0.15 + 4 * 0.06) = 10.3 requests a second each: 18 are 0.88 of that,
    # over the ceiling of 0.8 for as long as the load lasts, and below what makes them queue.
    with service.load(18.0, 20, tmp_path) as load:
        service.wait("scaled up", lambda: service.replicas() >= 3)
        decision = service.status()["decision"]
        summary = load.finish()
    # Up for the arrivals: the queue bound (4 per replica) had nothing to say.
    assert decision["reason"] in {"Burst", "LatencyModel", "UtilizationCeiling", "ReplicasWarming"}
    assert summary.tally.outcomes[Outcome.OK] == summary.requests

    risen, ended_s = service.replicas(), time.monotonic()
    with service.load(5.0, 30, tmp_path) as trickle:
        service.wait("scaled down", lambda: service.replicas() < risen, 60)
        assert time.monotonic() - ended_s >= 5  # the hold is 10 s, from the last wish for more
        service.wait("back at the minimum", lambda: service.replicas() == 2, 60)
        summary = trickle.finish()
    assert summary.tally.outcomes[Outcome.OK] == summary.requests
    assert service.replicas() == 2


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
    with service.load(18.0, 45, tmp_path) as load:
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
