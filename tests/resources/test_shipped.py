"""The operator's install manifests: least privilege and a safe pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from headroom.api.schema.crd import custom_resource_definition
from headroom.resources import desired_children
from support.service_world import service

DEPLOY = Path(__file__).parents[2] / "deploy"
WRITES_BEYOND_CREATION = {"update", "delete", "deletecollection", "bind", "escalate", "impersonate"}


def shipped() -> list[dict[str, Any]]:
    listed = yaml.safe_load((DEPLOY / "base" / "kustomization.yaml").read_text())["resources"]
    return [
        document
        for name in listed
        for document in yaml.safe_load_all((DEPLOY / "base" / name).read_text())
    ]


def one(kind: str, name: str = "headroom-operator") -> dict[str, Any]:
    (found,) = [d for d in shipped() if d["kind"] == kind and d["metadata"]["name"] == name]
    return found


def granted() -> dict[tuple[str, str], set[str]]:
    return {
        (group, resource): set(rule["verbs"])
        for rule in one("ClusterRole")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_every_base_manifest_is_installed() -> None:
    files = {path.name for path in (DEPLOY / "base").glob("*.yaml")} - {"kustomization.yaml"}
    listed = yaml.safe_load((DEPLOY / "base" / "kustomization.yaml").read_text())["resources"]
    assert set(listed) == files
    assert listed.index("namespace.yaml") < listed.index("operator.yaml")


def test_base_contains_the_crd() -> None:
    assert custom_resource_definition() in shipped()


def test_operator_role_allows_applying_each_kind_of_child() -> None:
    plural = {
        "ServiceAccount": ("", "serviceaccounts"),
        "Service": ("", "services"),
        "PodDisruptionBudget": ("policy", "poddisruptionbudgets"),
        "Deployment": ("apps", "deployments"),
    }
    kinds = {child["kind"] for child in desired_children(service())}
    assert kinds == set(plural)
    for kind in kinds:
        assert {"get", "create", "patch"} <= granted()[plural[kind]]


def test_operator_role_allows_no_delete_and_no_secret() -> None:
    for (group, resource), verbs in granted().items():
        assert "*" not in {group, resource, *verbs}
        assert resource not in {"secrets", "configmaps", "nodes"}
        if resource != "inferenceservices/finalizers":
            assert not verbs & WRITES_BEYOND_CREATION


def test_operator_role_allows_writing_status_only() -> None:
    assert granted()["headroom.dev", "inferenceservices"] == {"get", "list", "watch"}
    assert granted()["headroom.dev", "inferenceservices/status"] == {"patch"}


def test_operator_role_allows_its_own_lease_only() -> None:
    rules = one("Role")["rules"]
    assert all(rule["resources"] == ["leases"] for rule in rules)
    by_name = {tuple(rule.get("resourceNames", ())): rule["verbs"] for rule in rules}
    assert by_name == {("headroom-operator",): ["get", "update"], (): ["create"]}


def test_view_and_edit_roles_aggregate_the_resource() -> None:
    view, edit = one("ClusterRole", "headroom-view"), one("ClusterRole", "headroom-edit")
    label = "rbac.authorization.k8s.io/aggregate-to-"
    assert view["metadata"]["labels"][f"{label}view"] == "true"
    assert f"{label}view" not in edit["metadata"]["labels"]
    ours = [["inferenceservices"], ["inferenceservices/scale"]]
    assert [rule["resources"] for rule in edit["rules"]] == ours


def test_role_is_bound_to_the_pods_service_account() -> None:
    (subject,) = one("ClusterRoleBinding")["subjects"]
    account = one("ServiceAccount")["metadata"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert one("Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]


def test_rollout_starts_the_new_operator_before_the_old_one_ends() -> None:
    strategy = one("Deployment")["spec"]["strategy"]
    assert strategy == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
    }


def test_operator_has_a_memory_limit_and_no_cpu_limit() -> None:
    spec = one("Deployment")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["replicas"] == 1
    assert container["resources"]["limits"] == {"memory": "256Mi"}
    assert container["args"] == ["run"]


def test_operator_pod_meets_the_restricted_pod_security_standard() -> None:
    labels = one("Namespace", "headroom-system")["metadata"]["labels"]
    spec = one("Deployment")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
