"""The shipped ValidatingAdmissionPolicy on a real API server: allowed and refused specs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import ClusterError
from cluster.interface import Cluster, wait_until
from headroom.api.kind import API_VERSION, PLURAL
from scenarios.specs.spec_cases import MINIMAL, changed

pytestmark = pytest.mark.clock

BASE = Path(__file__).parents[3] / "deploy" / "base"
NAMESPACE, OPEN = "policy", "policy-open"
POD = "spec.runtime.podTemplate.spec"


@pytest.fixture(scope="module")
def cluster(control_plane: Cluster) -> Iterator[Cluster]:
    """A cluster with the policy in force, a namespace with its bounds and one that is free."""
    control_plane.kubectl("apply", "--server-side", "-f", BASE / "crd.yaml")
    control_plane.kubectl(
        *("wait", "--for=condition=Established", "--timeout=30s"),
        *("crd", "inferenceservices.headroom.dev"),
    )
    _namespace(control_plane, NAMESPACE)
    _namespace(
        control_plane,
        OPEN,
        labels={"headroom.dev/max-priority": "100", "headroom.dev/pod-template": "unrestricted"},
    )
    control_plane.kubectl("apply", "--server-side", "-f", BASE / "admission-policy.yaml")
    wait_until(
        lambda: _refusal(control_plane, {"spec.scaling.priority": 1}),
        what="the policy is in force",
        timeout_s=60,
    )
    yield control_plane
    control_plane.kubectl("delete", "-f", BASE / "admission-policy.yaml")
    for one in (NAMESPACE, OPEN):
        control_plane.kubectl("delete", "namespace", one, "--wait=false")


def _namespace(cluster: Cluster, name: str, **metadata: Any) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}})


def _refusal(cluster: Cluster, changes: dict[str, Any], namespace: str = NAMESPACE) -> str:
    """Return why a service is refused; empty where it is admitted."""
    body = MINIMAL
    for path, value in changes.items():
        body = changed(body, path, value)
    try:
        _create(cluster, body, namespace, "?dryRun=All")
    except ClusterError as error:
        return str(error)
    return ""


def _create(cluster: Cluster, body: dict[str, Any], namespace: str, query: str = "") -> None:
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}{query}"
    metadata = body["metadata"] | {"namespace": namespace}
    cluster.raw.ask("POST", path, body | {"metadata": metadata})


def _pod(**fields: Any) -> dict[str, Any]:
    return {POD: fields}


def _server(**fields: Any) -> dict[str, Any]:
    return _pod(containers=[{"name": "server", **fields}])


def _context(**fields: Any) -> dict[str, Any]:
    return _server(securityContext=fields)


REFUSED = {
    "priority": ({"spec.scaling.priority": 1}, "priority must be at most 0"),
    "hostNetwork": (_pod(hostNetwork=True), "hostNetwork"),
    "hostNetwork as text": (_pod(hostNetwork="true"), "hostNetwork"),
    "hostPID": (_pod(hostPID=True), "hostPID"),
    "hostIPC": (_pod(hostIPC=True), "hostIPC"),
    "hostPath": (_pod(volumes=[{"name": "a", "hostPath": {"path": "/"}}]), "volumes of"),
    "hostPath under a generated name": (
        _pod(volumes=[{"name": "tmp", "emptyDir": None, "hostPath": {"path": "/"}}]),
        "volumes of",
    ),
    "nfs": (_pod(volumes=[{"name": "a", "nfs": {"server": "a", "path": "/"}}]), "volumes of"),
    "privileged": (_context(privileged=True), "privileged"),
    "privileged sidecar": (
        _pod(containers=[{"name": "other", "securityContext": {"privileged": True}}]),
        "privileged",
    ),
    "privileged init container": (
        _pod(initContainers=[{"name": "other", "securityContext": {"privileged": True}}]),
        "privileged",
    ),
    "escalation": (_context(allowPrivilegeEscalation=True), "allowPrivilegeEscalation"),
    "capabilities": (_context(capabilities={"add": ["SYS_ADMIN"]}), "capabilities"),
    "procMount": (_context(procMount="Unmasked"), "procMount"),
    "seccomp of the pod": (
        _pod(securityContext={"seccompProfile": {"type": "Unconfined"}}),
        "Unconfined",
    ),
    "sysctls": (_pod(securityContext={"sysctls": [{"name": "a", "value": "1"}]}), "sysctls"),
    "hostProcess": (_context(windowsOptions={"hostProcess": True}), "hostProcess"),
    "hostPort": (_server(ports=[{"name": "http", "hostPort": 80}]), "hostPort"),
    "nodeName": (_pod(nodeName="node-1"), "nodeName"),
    "resourceClaims": (_pod(resourceClaims=[{"name": "gpu"}]), "resourceClaims"),
    "system priority": (_pod(priorityClassName="system-cluster-critical"), "system-"),
    "account": (_pod(serviceAccountName="deployer"), "serviceAccountName"),
    "account by its old name": (_pod(serviceAccount="deployer"), "serviceAccountName"),
    "containers": (
        _pod(containers=[{"name": f"c{number}"} for number in range(9)]),
        "at most 8 containers",
    ),
    "large environment": (
        {
            "spec.runtime.env": [
                {"name": f"V{number}", "value": "x" * 32_000} for number in range(5)
            ]
        },
        "at most 131072 bytes in all; got 160000",
    ),
    "large annotations": (
        {
            "spec.runtime.podTemplate.metadata.annotations": {
                f"a{number}": "x" * 60_000 for number in range(3)
            }
        },
        "at most 131072 bytes",
    ),
    "large environment of a sidecar": (
        _pod(containers=[{"name": "other", "env": [{"name": "A", "value": "x" * 140_000}]}]),
        "at most 131072 bytes",
    ),
}
ADMITTED = {
    "nothing special": {},
    "low priority": {"spec.scaling.priority": -10},
    "a placement": _pod(
        nodeSelector={"gpu": "a"},
        tolerations=[{"key": "gpu", "operator": "Exists"}],
        priorityClassName="batch",
        hostNetwork=False,
    ),
    "usual volumes": _pod(
        volumes=[{"name": "a", "configMap": {"name": "a"}}, {"name": "b", "emptyDir": {}}]
    ),
    "own account": _pod(serviceAccountName=MINIMAL["metadata"]["name"]),
    "a sidecar": _pod(
        containers=[{"name": "other", "image": "a", "ports": [{"containerPort": 9}]}],
        initContainers=[{"name": "first", "securityContext": {"readOnlyRootFilesystem": None}}],
    ),
    "numbers without quotes, which the operator reports": _pod(
        containers=[
            {"name": "other", "args": ["--port", 8000], "env": [{"name": "A", "value": 1.5}]}
        ],
    ),
}


@pytest.mark.parametrize(("changes", "words"), REFUSED.values(), ids=list(REFUSED))
def test_policy_refuses_what_the_namespace_may_not_have(
    cluster: Cluster, changes: dict[str, Any], words: str
) -> None:
    refused = _refusal(cluster, changes)
    assert "headroom-inferenceservices" in refused
    assert words in refused


@pytest.mark.parametrize("changes", ADMITTED.values(), ids=list(ADMITTED))
def test_policy_admits_what_services_need(cluster: Cluster, changes: dict[str, Any]) -> None:
    assert _refusal(cluster, changes) == ""


def test_labels_of_the_namespace_relax_the_policy(cluster: Cluster) -> None:
    for changes in ({"spec.scaling.priority": 100}, _pod(hostNetwork=True), _pod(nodeName="a")):
        assert _refusal(cluster, changes, OPEN) == ""
    assert "at most 100" in _refusal(cluster, {"spec.scaling.priority": 101}, OPEN)


def test_label_that_is_no_number_leaves_the_bound_of_the_policy(cluster: Cluster) -> None:
    _namespace(cluster, "policy-label", labels={"headroom.dev/max-priority": "high"})
    wait_until(
        lambda: not _refusal(cluster, {"spec.scaling.priority": 0}, "policy-label"),
        what="the namespace is known",
        timeout_s=30,
    )
    refused = _refusal(cluster, {"spec.scaling.priority": 1}, "policy-label")
    assert "at most 0" in refused
    assert "the label headroom.dev/max-priority, a whole number" in refused
    cluster.kubectl("delete", "namespace", "policy-label", "--wait=false")


def test_annotation_of_the_namespace_admits_service_accounts(cluster: Cluster) -> None:
    notes = {"headroom.dev/service-accounts": "reader, writer"}
    _namespace(cluster, "policy-accounts", annotations=notes)
    wait_until(
        lambda: not _refusal(cluster, _pod(serviceAccountName="writer"), "policy-accounts"),
        what="the namespace is known",
        timeout_s=30,
    )
    refused = _refusal(cluster, _pod(serviceAccountName="other"), "policy-accounts")
    assert "reader or writer; got other;" in refused
    cluster.kubectl("delete", "namespace", "policy-accounts", "--wait=false")


def test_stored_object_that_breaks_the_policy_can_be_labelled_and_not_changed(
    cluster: Cluster,
) -> None:
    body = changed(MINIMAL, "spec.scaling.priority", 50)
    _create(cluster, body, OPEN)
    name = f"inferenceservice/{MINIMAL['metadata']['name']}"
    cluster.kubectl("label", "namespace", OPEN, "headroom.dev/max-priority-")
    patch = '{"spec":{"scaling":{"maxReplicas":7}}}'

    def refused() -> bool:
        try:
            cluster.kubectl(
                *("patch", name, "--namespace", OPEN, "--type=merge", "-p", patch),
                "--dry-run=server",
            )
        except ClusterError as error:
            return "at most 0" in str(error)
        return False

    wait_until(refused, what="the label is known to be gone", timeout_s=30)
    cluster.kubectl("label", name, "--namespace", OPEN, "a=b")
    cluster.kubectl("label", "namespace", OPEN, "headroom.dev/max-priority=100")
