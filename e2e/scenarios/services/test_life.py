"""An InferenceService from apply to deletion, on a real node with the shipped operator."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from cluster import Cluster, ClusterError
from scenarios.world import OPERATOR, SERVER_IMAGE, SYSTEM, Service, emulated, install_operator

pytestmark = pytest.mark.clock

CONDITIONS = {
    "Ready",
    "ScalingActive",
    "AbleToScale",
    "ScalingLimited",
    "MetricsAvailable",
    "SLOMet",
    "SLOFeasible",
    "DemandVisible",
    "ScalingEffective",
    "ReplicasHealthy",
    "CapacityAvailable",
    "RoutingReady",
    "PartnerSeen",
}
CHILDREN = ("deployment", "service", "poddisruptionbudget", "serviceaccount")


@pytest.fixture(scope="module", autouse=True)
def operator(cluster: Cluster) -> None:
    install_operator(cluster)


def test_create_warm_ready_serve(cluster: Cluster, namespace: str) -> None:
    service = Service.create(cluster, namespace, emulated("first", load_s=3.0))
    seen = service.wait("conditions at first sight", lambda: service.status().get("conditions"))
    assert {condition["type"] for condition in seen} == CONDITIONS
    ready = next(condition for condition in seen if condition["type"] == "Ready")
    assert ready["status"] != "True"  # three seconds of loading lie ahead
    service.wait_ready()

    pod = service.pods()[0]
    ready = next(c for c in pod["status"]["conditions"] if c["type"] == "Ready")
    assert ready["status"] == "True"
    status = service.status()
    assert status["replicas"] == status["readyReplicas"] == 1
    assert status["observedGeneration"] == service.get()["metadata"]["generation"]

    with cluster.forward(f"service/{service.name}", 80, namespace) as endpoint:
        with urllib.request.urlopen(f"{endpoint.url}/v2/health/ready", timeout=5) as answer:
            body = json.load(answer)
        assert answer.status == 200
        with urllib.request.urlopen(f"{endpoint.url}/v2/models/first", timeout=5) as answer:
            assert json.load(answer)["name"] == "first"
    assert "emulated" in json.dumps(body)

    decision = service.wait("a decision", lambda: service.status().get("decision"))
    assert decision["message"]
    service.wait("counterfactuals", lambda: service.status()["decision"].get("counterfactuals"), 40)
    assert "finalizers" not in service.get()["metadata"]
    columns = cluster.kubectl("get", "hisvc", "--namespace", namespace).splitlines()[0].split()
    assert {"READY", "TARGET", "REASON", "AGE"} <= set(columns)


def test_drift_is_repaired_and_replicas_keep_their_owner(cluster: Cluster, namespace: str) -> None:
    manifest = emulated("steady", scaling={"minReplicas": 2}, env={"EXTRA": "1"})
    service = Service.create(cluster, namespace, manifest)
    service.wait_ready()
    scope = ("--namespace", namespace)

    cluster.kubectl("delete", "service", "steady", *scope)
    cluster.kubectl("delete", "pdb", "steady", *scope)
    path = "/spec/template/spec/containers/0/image"
    patch = json.dumps([{"op": "replace", "path": path, "value": "localhost/another:dev"}])
    cluster.kubectl("patch", "deployment", "steady", *scope, "--type=json", "-p", patch)

    def repaired() -> bool:
        try:
            found = [cluster.get(kind, "steady", *scope) for kind in ("service", "pdb")]
        except ClusterError:
            return False
        container = service.deployment()["spec"]["template"]["spec"]["containers"][0]
        return len(found) == 2 and container["image"] == SERVER_IMAGE

    service.wait("what was deleted and changed is back", repaired, 60)

    without = emulated("steady", scaling={"minReplicas": 2})
    Service.create(cluster, namespace, without)

    def dropped() -> bool:
        variables = service.deployment()["spec"]["template"]["spec"]["containers"][0]["env"]
        return all(variable["name"] != "EXTRA" for variable in variables)

    service.wait("the variable that left the spec has left the Deployment", dropped)
    assert service.replicas() == 2
    shown = cluster.get("deployment", "steady", *scope, "--show-managed-fields")
    owners = {
        entry["manager"]
        for entry in shown["metadata"]["managedFields"]
        if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
    }
    assert owners == {"headroom-scaler"}


def test_deployment_deleted_under_load_is_recreated_with_the_decided_replicas(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    slow = {"scaleDown": {"stabilizationWindow": "10m"}}  # nothing falls while it is looked at
    service = Service.create(cluster, namespace, emulated("wanted", scaling=slow))
    service.wait_ready()
    with service.load(18.0, 60, tmp_path):
        service.wait("three replicas ready", lambda: service.ready_replicas() >= 3, 50)
        decided, uid = service.replicas(), service.deployment()["metadata"]["uid"]
        cluster.kubectl("delete", "deployment", "wanted", "--namespace", namespace)

        def back() -> bool:
            try:
                return bool(service.deployment()["metadata"]["uid"] != uid)
            except ClusterError:
                return False

        service.wait("a new Deployment", back)
        assert service.replicas() >= decided


def test_deletion_removes_everything_without_a_finalizer(cluster: Cluster, namespace: str) -> None:
    service = Service.create(cluster, namespace, emulated("gone"))
    service.wait_ready()
    cluster.kubectl("delete", "hisvc", "gone", "--namespace", namespace, "--timeout=5s")
    label = "headroom.dev/inference-service=gone"

    def empty() -> bool:
        kinds = ",".join(CHILDREN)
        return not cluster.get(kinds, "--namespace", namespace, "-l", label)["items"]

    service.wait("all children collected", empty, 60)


def test_recommend_mode_writes_children_and_no_replicas(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    manifest = emulated("advice", scaling={"mode": "Recommend", "minReplicas": 1})
    service = Service.create(cluster, namespace, manifest)
    service.wait_ready()
    with service.load(16.0, 30, tmp_path):
        service.wait(
            "a recommendation above the current replicas",
            lambda: service.status()["decision"]["replicas"] > 1,
        )
        assert service.replicas() == 1
    cluster.kubectl(*("scale", "deployment/advice", "--replicas=2", "--namespace", namespace))
    service.wait("two replicas ready", lambda: service.ready_replicas() == 2)
    assert service.replicas() == 2  # what a person chose stays


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ({"containers": [{"name": "server", "volumeMounts": [{"name": "gone"}]}]}, "volumeMounts"),
        (
            {"containers": [{"name": "server", "resources": {"limits": {"memory": "16GB"}}}]},
            "quantities must match",
        ),
        ({"nodeSelectorr": {"gpu": "l4"}}, "nodeSelectorr: field not declared"),
    ],
    ids=["reference", "quantity", "misspelt field"],
)
def test_rejected_pod_template_holds_with_invalid_spec(
    cluster: Cluster, namespace: str, mistake: dict[str, Any], said: str
) -> None:
    manifest = emulated("broken-spec")
    manifest["spec"]["runtime"]["podTemplate"] = {"spec": mistake}
    service = Service.create(cluster, namespace, manifest)
    service.wait("InvalidSpec", lambda: service.condition("Ready").get("reason") == "InvalidSpec")
    message = service.condition("Ready")["message"]
    assert said in message
    assert not cluster.get("deployments", "--namespace", namespace)["items"]
    Service.create(cluster, namespace, emulated("broken-spec"))
    service.wait_ready()


@pytest.mark.parametrize(
    ("verb", "resource", "allowed"),
    [
        ("watch", "inferenceservices.headroom.dev", "yes"),
        ("patch", "deployments.apps/scale", "yes"),
        ("patch", "inferenceservices.headroom.dev", "no"),
        ("get", "secrets", "no"),
        ("delete", "pods", "no"),
        ("patch", "pods", "no"),
        ("create", "pods/exec", "no"),
        ("update", "deployments.apps", "no"),
    ],
)
def test_operator_permissions_suffice_and_are_minimal(
    cluster: Cluster, verb: str, resource: str, allowed: str
) -> None:
    account = f"--as=system:serviceaccount:{SYSTEM}:{OPERATOR}"
    try:
        said = cluster.kubectl("auth", "can-i", verb, resource, account, "-n", "default")
    except ClusterError as error:  # "no" is exit status 1
        said = str(error)
    assert allowed in said.split()
