"""The control plane serves the API, schedules pods and enforces access."""

from __future__ import annotations

from typing import Any

import pytest

from cluster import ClusterError, ControlPlane, wait_until

pytestmark = pytest.mark.clock


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> ControlPlane:
    """These tests need the API only."""
    return control_plane


def test_pods_are_scheduled_by_their_gpus(cluster: ControlPlane, namespace: str) -> None:
    cluster.add_node("written", gpus=2)
    pods = [pod(name, namespace, gpus=1) for name in ("one", "two", "three")]
    cluster.apply(*pods)

    def placed() -> list[str]:
        found = cluster.get("pods", "--namespace", namespace)["items"]
        names = [each["metadata"]["name"] for each in found if each["spec"].get("nodeName")]
        refused = [each for each in found if each.get("status", {}).get("conditions")]
        return names if len(names) == 2 and len(refused) == 3 else []

    assert len(wait_until(placed, what="two of three pods are placed", timeout_s=20)) == 2
    cluster.kubectl("delete", "node", "written")


def test_a_service_account_may_do_only_what_its_role_says(
    cluster: ControlPlane, namespace: str
) -> None:
    scope = ("--namespace", namespace)
    cluster.kubectl("create", "serviceaccount", "reader", *scope)
    cluster.kubectl("create", "role", "reads", "--verb=get,list", "--resource=pods", *scope)
    subject = f"--serviceaccount={namespace}:reader"
    cluster.kubectl("create", "rolebinding", "reads", "--role=reads", subject, *scope)
    own = ("--kubeconfig", cluster.service_account_kubeconfig(namespace, "reader"))
    cluster.kubectl("get", "pods", *own)
    with pytest.raises(ClusterError, match="forbidden"):
        cluster.kubectl("get", "secrets", *own)


def test_second_object_of_the_same_name_is_rejected(cluster: ControlPlane) -> None:
    with pytest.raises(ClusterError, match="exists already"):
        ControlPlane(cluster.name).start()
    assert "default" in cluster.kubectl("get", "namespaces")


def pod(name: str, namespace: str, *, gpus: int) -> dict[str, Any]:
    """A pod that asks for GPUs; nothing runs here, so its image does not exist."""
    container = {
        "name": "main",
        "image": "localhost/none:1",
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [container]},
    }
