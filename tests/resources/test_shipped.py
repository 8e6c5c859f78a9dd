"""The manifests that install the operator: least privilege, and a pod that is safe to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from headroom.api.crd import custom_resource_definition
from headroom.resources import desired_children
from service_world import service

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


def test_every_manifest_of_the_base_is_installed() -> None:
    files = {path.name for path in (DEPLOY / "base").glob("*.yaml")} - {"kustomization.yaml"}
    listed = yaml.safe_load((DEPLOY / "base" / "kustomization.yaml").read_text())["resources"]
    assert set(listed) == files
    assert listed.index("namespace.yaml") < listed.index("operator.yaml")


def test_the_crd_comes_with_the_rest() -> None:
    assert custom_resource_definition() in shipped()


def test_the_operator_may_apply_each_kind_of_child() -> None:
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


def test_the_operator_deletes_nothing_and_reads_no_secret() -> None:
    for (group, resource), verbs in granted().items():
        assert "*" not in {group, resource, *verbs}
        assert resource not in {"secrets", "configmaps", "nodes"}
        if resource != "inferenceservices/finalizers":
            assert not verbs & WRITES_BEYOND_CREATION


def test_the_operator_writes_of_our_resource_the_status_only() -> None:
    assert granted()["headroom.dev", "inferenceservices"] == {"get", "list", "watch"}
    assert granted()["headroom.dev", "inferenceservices/status"] == {"patch"}


def test_the_operator_may_hold_its_lease_and_touch_no_other() -> None:
    rules = one("Role")["rules"]
    assert all(rule["resources"] == ["leases"] for rule in rules)
    by_name = {tuple(rule.get("resourceNames", ())): rule["verbs"] for rule in rules}
    assert by_name == {("headroom-operator",): ["get", "update"], (): ["create"]}


def test_viewers_and_editors_of_a_namespace_get_our_resource_without_more() -> None:
    view, edit = one("ClusterRole", "headroom-view"), one("ClusterRole", "headroom-edit")
    label = "rbac.authorization.k8s.io/aggregate-to-"
    assert view["metadata"]["labels"][f"{label}view"] == "true"
    assert f"{label}view" not in edit["metadata"]["labels"]
    ours = [["inferenceservices"], ["inferenceservices/scale"]]
    assert [rule["resources"] for rule in edit["rules"]] == ours


def test_the_role_is_bound_to_the_account_of_the_pod() -> None:
    (subject,) = one("ClusterRoleBinding")["subjects"]
    account = one("ServiceAccount")["metadata"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert one("Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]


def test_a_new_operator_is_ready_before_the_old_one_ends_and_takes_over_its_lease() -> None:
    strategy = one("Deployment")["spec"]["strategy"]
    assert strategy == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
    }


def test_one_operator_runs_with_bounded_memory_and_no_limit_on_cpu() -> None:
    spec = one("Deployment")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["replicas"] == 1
    assert container["resources"]["limits"] == {"memory": "256Mi"}
    assert container["args"] == ["run"]


def test_the_operators_pod_is_acceptable_under_the_restricted_policy_of_its_namespace() -> None:
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
