"""A chart release from install to reinstall, with Helm, on a node with services."""

from __future__ import annotations

import json
import shutil
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chart.helm import Helm
from chart.paths import CHART
from cluster import Cluster, wait_until
from scenarios.installation.local_images import OPERATOR_IMAGE
from scenarios.world import OPERATOR, SYSTEM, Service, emulated

pytestmark = pytest.mark.clock

READY_WITHIN_S = 30.0
"""Promised, from `helm install --wait` to its return."""
CRD = "inferenceservices.headroom.dev"
LOCAL_IMAGE = {"image": OPERATOR_IMAGE}
RELEASE = ("headroom", CHART, "--namespace", SYSTEM, "--wait", "--timeout", "60s")
PREVIOUS = "0.0.9"
IN_CATEGORY = "    categories:\n    - headroom\n"


@pytest.fixture(scope="module")
def cluster(own_node: Cluster) -> Cluster:
    return own_node


@pytest.fixture(scope="module")
def team(cluster: Cluster) -> Iterator[str]:
    """A namespace that outlives the single steps, under restricted pod security."""
    cluster.create_namespace("chart-team")
    restrict(cluster, "chart-team")
    yield "chart-team"
    cluster.kubectl("delete", "namespace", "chart-team", "--wait=false")


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart of an earlier version, whose definition was in no category."""
    folder = tmp_path_factory.mktemp("previous") / "headroom"
    shutil.copytree(CHART, folder)
    about = folder / "Chart.yaml"
    about.write_text(about.read_text().replace("version: 0.1.0", f"version: {PREVIOUS}"))
    definition = folder / "files" / "crd.yaml"
    text = definition.read_text()
    assert IN_CATEGORY in text
    definition.write_text(text.replace(IN_CATEGORY, ""))
    return folder


def restrict(cluster: Cluster, namespace: str) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    cluster.kubectl("label", "namespace", namespace, label, "--overwrite")


def footprint(service: Service) -> dict[str, Any]:
    """Return what the installation or removal of an operator must not change."""
    deployment = service.deployment()
    pods = {
        pod["metadata"]["name"]: pod["status"]["containerStatuses"][0]["restartCount"]
        for pod in service.pods()
    }
    return {
        "uid": deployment["metadata"]["uid"],
        "generation": deployment["metadata"]["generation"],
        "replicas": deployment["spec"]["replicas"],
        "pods": pods,
    }


def serves(service: Service) -> bool:
    target = f"service/{service.name}"
    with (
        service.cluster.forward(target, 80, service.namespace) as endpoint,
        urllib.request.urlopen(f"{endpoint.url}/v2/health/ready", timeout=5) as answer,
    ):
        return int(answer.status) == 200


def obeyed(service: Service) -> None:
    """Change what a Deployment does not show, and wait until an operator uses it."""
    most = service.get()["spec"]["scaling"]["maxReplicas"] + 1
    patch = json.dumps({"spec": {"scaling": {"maxReplicas": most}}})
    scope = ("--namespace", service.namespace)
    service.cluster.kubectl("patch", "hisvc", service.name, *scope, "--type=merge", "-p", patch)

    def taken_in() -> bool:
        found = service.get()
        return bool(found["status"]["observedGeneration"] == found["metadata"]["generation"])

    service.wait("the new bound is in force", taken_in, 40)


def categories(cluster: Cluster) -> list[str]:
    return list(cluster.get("crd", CRD)["spec"]["names"].get("categories", []))


def test_release_survives_upgrade_rollback_uninstall_and_reinstall(
    cluster: Cluster, own_helm: Helm, team: str, previous: Path
) -> None:
    cluster.create_namespace(SYSTEM)
    restrict(cluster, SYSTEM)
    begun_s = time.monotonic()
    own_helm("install", RELEASE[0], previous, *RELEASE[2:], values=LOCAL_IMAGE)
    took_s = time.monotonic() - begun_s
    print(f"helm install --wait: {took_s:.1f} s")
    assert took_s <= READY_WITHIN_S
    assert "Phase:          Succeeded" in own_helm(
        "test", "headroom", "--namespace", SYSTEM, "--logs"
    )

    service = Service.create(cluster, team, emulated("kept", scaling={"minReplicas": 2}))
    service.wait_ready(60)
    service.wait("both replicas", lambda: service.ready_replicas() == 2)
    before = footprint(service)
    assert before["replicas"] == 2
    assert categories(cluster) == []

    own_helm("upgrade", *RELEASE, values=LOCAL_IMAGE)
    assert categories(cluster) == ["headroom"]
    obeyed(service)
    assert footprint(service) == before

    own_helm("rollback", "headroom", "1", "--namespace", SYSTEM, "--wait", "--timeout", "60s")
    assert categories(cluster) == []
    own_helm("upgrade", *RELEASE, values=LOCAL_IMAGE | {"replicas": 2})
    obeyed(service)
    assert footprint(service) == before

    def healthy() -> bool:  # the disruption controller sees new pods late
        budget = cluster.get("pdb", OPERATOR, "--namespace", SYSTEM)
        return bool(budget["status"]["currentHealthy"] == 2)

    wait_until(healthy, what="the budget counts both operators", timeout_s=30)

    own_helm("uninstall", "headroom", "--namespace", SYSTEM, "--wait")
    assert footprint(service) == before
    assert serves(service)
    assert service.condition("Ready")["status"] == "True"

    own_helm("install", *RELEASE, values=LOCAL_IMAGE | {"watch": {"namespaces": [team]}})
    obeyed(service)
    assert footprint(service) == before


def test_release_for_one_namespace_ignores_other_namespaces(
    cluster: Cluster, own_helm: Helm, team: str, namespace: str
) -> None:
    values = LOCAL_IMAGE | {"watch": {"namespaces": [team]}}
    own_helm("upgrade", "--install", *RELEASE, values=values)
    Service.create(cluster, namespace, emulated("foreign"))
    watched = Service.create(cluster, team, emulated("watched"))
    watched.wait_ready()
    assert not cluster.get("deployments", "--namespace", namespace)["items"]
    account = f"--as=system:serviceaccount:{SYSTEM}:{OPERATOR}"
    allowed = cluster.kubectl("auth", "can-i", "--list", account, "--namespace", namespace)
    assert "inferenceservices" not in allowed


def test_namespace_editor_may_edit_services(
    cluster: Cluster, own_helm: Helm, namespace: str
) -> None:
    own_helm("upgrade", "--install", *RELEASE, values=LOCAL_IMAGE)
    words = ("--clusterrole=edit", "--user=editor", "--namespace", namespace)
    cluster.kubectl("create", "rolebinding", "editor", *words)

    def allowed(verb: str) -> str:
        question = ("auth", "can-i", verb, CRD, "--as=editor", "--namespace", namespace)
        return cluster.kubectl(*question).strip()

    assert [allowed(verb) for verb in ("get", "create", "delete")] == ["yes"] * 3
