"""Rollouts of a single replica that holds accelerators, on a real node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster import Cluster
from load.outcomes import Outcome
from scenarios.world import SERVER_IMAGE, Service, emulated, install_operator

pytestmark = pytest.mark.clock

MISSING = "localhost/no-such-image:none"
WAIT_S = 30.0
"""The shortest wait for accelerators."""


@pytest.fixture(scope="module", autouse=True)
def operator(cluster: Cluster) -> None:
    install_operator(cluster)


def of(gpus: int, name: str) -> dict[str, Any]:
    """Build a service with one replica; the node has 8 GPUs."""
    return emulated(
        name,
        scaling={"maxReplicas": 1},
        accelerator={"resource": "nvidia.com/gpu", "count": gpus},
        drain={"gracePeriod": "2s"},
    )


def roll(service: Service, image: str, mark: str) -> None:
    """Edit the image, and a variable by which the new pods are known."""
    env = [*service.get()["spec"]["runtime"]["env"], {"name": "MARK", "value": mark}]
    env = list({one["name"]: one for one in env}.values())
    patch = json.dumps({"spec": {"runtime": {"image": image, "env": env}}})
    scope = ("--namespace", service.namespace)
    service.cluster.kubectl("patch", "hisvc", service.name, *scope, "--type=merge", "-p", patch)


def is_all_new(service: Service, mark: str) -> bool:
    """Return whether one pod is there, and has the mark, and is ready."""
    marks = [
        (one.get("value"), service.ready_replicas())
        for pod in service.pods()
        for one in pod["spec"]["containers"][0]["env"]
        if one["name"] == "MARK"
    ]
    return marks == [(mark, 1)] and len(service.pods()) == 1


def test_missing_image_and_its_correction_lose_no_request(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    service = Service.create(cluster, namespace, of(4, "kept"))
    service.wait_ready()
    with service.load(4.0, 120, tmp_path) as load:
        roll(service, MISSING, "missing")
        service.wait(
            "the missing image reported",
            lambda: MISSING in service.condition("CapacityAvailable").get("message", ""),
        )
        assert service.condition("Ready")["status"] == "True"
        assert "kubectl edit hisvc kept" in service.condition("AbleToScale")["message"]
        roll(service, SERVER_IMAGE, "good")
        service.wait("the corrected image", lambda: is_all_new(service, "good"), 60)
        outcomes = load.finish(early=True).tally.outcomes
    assert set(outcomes) == {Outcome.OK}


def test_rollout_without_free_gpus_goes_on_in_place(cluster: Cluster, namespace: str) -> None:
    service = Service.create(cluster, namespace, of(8, "full"))
    service.wait_ready()
    roll(service, SERVER_IMAGE, "second")
    service.wait(
        "what it waits for", lambda: "in place from" in service.condition("AbleToScale")["message"]
    )
    assert service.ready_replicas() == 1
    service.wait("in place", lambda: is_all_new(service, "second"), WAIT_S + 60)
    strategy = "the next rollout will surge"
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    service.wait(
        strategy, lambda: service.deployment()["spec"]["strategy"]["rollingUpdate"] == rolling
    )
