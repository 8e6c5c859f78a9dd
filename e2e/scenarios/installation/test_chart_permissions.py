"""Permissions that the chart grants: only those that the values ask for."""

from __future__ import annotations

from typing import Any

import pytest

from chart.comparison import by_identity
from chart.helm import Helm
from chart.paths import CHART
from scenarios.installation.rendered_chart import of_kind

CLUSTER_WIDE = {
    *("CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "PriorityClass"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
}


def test_release_for_two_namespaces_has_permissions_only_there(helm: Helm) -> None:
    values = {
        "watch": {"namespaces": ["a", "b"]},
        "rbac": {"aggregate": False},
        "crds": {"install": False},
        "admissionPolicy": {"create": False},
    }
    rendered = helm.template(CHART, values)
    assert not {each["kind"] for each in rendered} & CLUSTER_WIDE
    roles = [each["metadata"] for each in rendered if each["kind"] == "Role"]
    assert {role["namespace"] for role in roles} == {"a", "b", "headroom-system"}
    container = of_kind(rendered, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == ["run", "--namespace=a", "--namespace=b"]


def test_second_release_as_documented_shares_no_object_with_the_first(helm: Helm) -> None:
    everything = {"gateway": {"enabled": True}, "priorityClass": {"create": True}, "replicas": 2}
    first = helm.template(CHART, everything)
    second = helm.template(
        CHART,
        everything | {"watch": {"namespaces": ["team-b"]}, "crds": {"install": False}},
        release="team-b",
        namespace="headroom-team-b",
    )
    assert not by_identity(first).keys() & by_identity(second).keys()


def test_release_that_may_not_evict_pods_lacks_only_that_permission(helm: Helm) -> None:
    def granted(values: dict[str, Any]) -> list[dict[str, Any]]:
        roles = [one for one in helm.template(CHART, values) if one["kind"] == "ClusterRole"]
        (rules,) = [one["rules"] for one in roles if one["metadata"]["name"].endswith("operator")]
        return list(rules)

    without = granted({"rbac": {"evictPods": False}})
    lacking = [rule for rule in granted({}) if rule not in without]
    assert [rule["resources"] for rule in lacking] == [["pods/eviction"]]
    more = [rule for rule in granted({"rbac": {"markPods": True}}) if rule not in granted({})]
    assert [(rule["resources"], rule["verbs"]) for rule in more] == [(["pods"], ["patch"])]


def test_only_a_release_that_marks_pods_may_patch_them_and_says_so(helm: Helm) -> None:
    for marks in (False, True):
        rendered = helm.template(CHART, {"rbac": {"markPods": marks}})
        rights = [
            rule
            for one in rendered
            if one["kind"] in ("Role", "ClusterRole")
            for rule in one["rules"]
            if "pods" in rule["resources"] and {"patch", "update"} & set(rule["verbs"])
        ]
        assert bool(rights) is marks
        container = of_kind(rendered, "Deployment")["spec"]["template"]["spec"]["containers"][0]
        assert ("--mark-pods" in container["args"]) is marks


@pytest.mark.parametrize("reviews", [True, False])
def test_release_for_two_namespaces_with_gateways_has_permissions_only_there(
    helm: Helm, reviews: bool
) -> None:
    values = {
        "watch": {"namespaces": ["a", "b"]},
        "rbac": {"aggregate": False},
        "crds": {"install": False},
        "admissionPolicy": {"create": False},
        "gateway": {"enabled": True, "reviewTokens": reviews},
    }
    rendered = helm.template(CHART, values)
    of_cluster = [one for one in rendered if one["kind"] in CLUSTER_WIDE]
    assert {one["kind"] for one in of_cluster} == (
        {"ClusterRole", "ClusterRoleBinding"} if reviews else set()
    )
    roles = [one for one in rendered if one["kind"] == "ClusterRole"]
    assert [rule["resources"] for one in roles for rule in one["rules"]] == (
        [["tokenreviews"]] if reviews else []
    )
    granted = {
        (one["metadata"]["namespace"], resource, tuple(rule["verbs"]))
        for one in rendered
        if one["kind"] == "Role" and one["metadata"]["name"].endswith("-gateway")
        for rule in one["rules"]
        for resource in rule["resources"]
    }
    assert granted == {
        ("a", "endpointslices", ("get", "list", "create", "patch")),
        ("b", "endpointslices", ("get", "list", "create", "patch")),
        ("headroom-system", "pods", ("list", "watch")),
    }
    bound = {
        (one["metadata"]["namespace"], one["roleRef"]["name"])
        for one in rendered
        if one["kind"] == "RoleBinding"
    }
    assert {
        (one["metadata"]["namespace"], one["metadata"]["name"])
        for one in rendered
        if one["kind"] == "Role"
    } == bound
    (operator,) = [
        one
        for one in rendered
        if one["kind"] == "Deployment" and one["metadata"]["name"] == "headroom-operator"
    ]
    arguments = operator["spec"]["template"]["spec"]["containers"][0]["args"]
    assert ("--no-review-gateway-tokens" in arguments) is not reviews


def test_certificates_of_another_issuer_are_neither_created_nor_written(helm: Helm) -> None:
    issuer = {"certificates": {"issuer": "secret"}}
    rendered = by_identity(helm.template(CHART, {"gateway": {"enabled": True, **issuer}}))
    assert not [name for name in rendered if name[0] == "Secret"]
    role = rendered["Role", "headroom-system", "headroom-operator-certificates"]
    (rule,) = role["rules"]
    assert (rule["resourceNames"], rule["verbs"]) == (["headroom-operator-tls"], ["get"])
    operator = rendered["Deployment", "headroom-system", "headroom-operator"]["spec"]["template"]
    assert "--gateway-certificates=secret" in operator["spec"]["containers"][0]["args"]
