"""The rendered chart compared with the plain manifests, at the API server, and by promtool."""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart import expressions
from chart.comparison import by_identity
from chart.helm import Helm, objects
from chart.paths import ALERT_TESTS, ALERTS, BASE, CHART, COMPONENT, DASHBOARD
from cluster import Cluster, ClusterError, ControlPlane
from cluster.commands import run

EVERYTHING: dict[str, Any] = {
    "replicas": 2,
    "commonLabels": {"team": "platform"},
    "image": {"repository": "registry.example/headroom", "digest": f"sha256:{'0' * 64}"},
    "imagePullSecrets": [{"name": "registry"}],
    "tick": "5s",
    "caps": {"replicasPerService": 40, "accelerators": 200, "notAccelerators": ["a.b/*"]},
    "downloader": {"image": "registry.example/fetch:2"},
    "serviceAccount": {"annotations": {"example.com/role": "scaler"}},
    "podLabels": {"cost": "shared"},
    "podAnnotations": {"example.com/scan": "yes"},
    "env": [{"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}],
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "system", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClass": {"create": True},
    "service": {"port": 9090, "annotations": {"example.com/a": "b"}},
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {}}]},
    "monitoring": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True, "runbookUrl": "https://runbooks.example/headroom.md"},
        "dashboard": {"enabled": True, "annotations": {"grafana_folder": "Inference"}},
    },
}
OF_PROMETHEUS_OPERATOR = {"ServiceMonitor", "PodMonitor", "PrometheusRule"}
CLUSTER_WIDE = {
    *("CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "PriorityClass"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
}


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> ControlPlane:
    return control_plane


@pytest.fixture(scope="module")
def helm(helm_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(helm_program, tmp_path_factory.mktemp("helm"))


def of_kind(manifests: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [each for each in manifests if each["kind"] == kind]
    return found


def test_lint_finds_nothing(helm: Helm) -> None:
    helm("lint", "--strict", CHART)
    helm("lint", "--strict", CHART, values=EVERYTHING)


def test_chart_and_plain_manifests_install_the_same(helm: Helm, cluster: Cluster) -> None:
    plain = by_identity(objects(cluster.kubectl("kustomize", str(BASE))))
    rendered = by_identity(helm.template(CHART))
    del plain["Namespace", "", "headroom-system"]  # Helm has --create-namespace
    del rendered["Pod", "headroom-system", "headroom-test"]  # of `helm test`
    assert set(plain) == set(rendered)
    for name, manifest in plain.items():
        assert rendered[name] == manifest, name


def test_with_gateways_chart_and_plain_manifests_install_the_same(
    helm: Helm, cluster: Cluster, tmp_path: Path
) -> None:
    overlay = {
        "resources": [os.path.relpath(BASE, tmp_path)],
        "components": [os.path.relpath(COMPONENT, tmp_path)],
    }
    (tmp_path / "kustomization.yaml").write_text(json.dumps(overlay))
    plain = by_identity(objects(cluster.kubectl("kustomize", str(tmp_path))))
    rendered = by_identity(helm.template(CHART, {"gateway": {"enabled": True}}))
    del plain["Namespace", "", "headroom-system"]
    del rendered["Pod", "headroom-system", "headroom-test"]
    assert set(plain) == set(rendered)
    for name, manifest in plain.items():
        assert rendered[name] == manifest, name


def test_gateways_and_sources_are_as_the_values_say(helm: Helm) -> None:
    values = {
        "image": {"repository": "registry.example/headroom", "tag": "1"},
        "imagePullSecrets": [{"name": "registry"}],
        "networkPolicy": {"enabled": True},
        "prometheus": {"sources": {"main": "http://prometheus.monitoring:9090"}},
        "gateway": {
            "enabled": True,
            "replicas": 3,
            "workers": 4,
            "image": {"repository": "registry.example/gateway", "digest": f"sha256:{'1' * 64}"},
            "resources": {"limits": {"memory": "1Gi"}},
        },
    }
    rendered = by_identity(helm.template(CHART, values, release="canary", namespace="elsewhere"))
    gateway = rendered["Deployment", "elsewhere", "headroom-gateway"]["spec"]
    envoy, standby = gateway["template"]["spec"]["containers"]
    assert gateway["replicas"] == 3
    assert envoy["args"] == ["--concurrency", "4"]
    assert gateway["template"]["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert envoy["image"] == standby["image"] == f"registry.example/gateway@sha256:{'1' * 64}"
    assert envoy["resources"] == {
        "requests": {"cpu": "500m", "memory": "128Mi"},
        "limits": {"memory": "1Gi"},
    }
    assert standby["resources"]["limits"] == {"memory": "128Mi"}
    activator = rendered["Deployment", "elsewhere", "headroom-activator"]["spec"]["template"]
    assert activator["spec"]["containers"][0]["image"] == "registry.example/headroom:1"
    operator = rendered["Deployment", "elsewhere", "canary-headroom-operator"]["spec"]["template"]
    arguments = operator["spec"]["containers"][0]["args"]
    assert arguments[:3] == ["run", "--gateway-namespace", "elsewhere"]
    assert "--prometheus=main=http://prometheus.monitoring:9090" in arguments
    binding = rendered["ClusterRoleBinding", "", "canary-headroom-operator-gateway"]
    assert binding["subjects"][0]["name"] == "canary-headroom-operator"
    policy = rendered["NetworkPolicy", "elsewhere", "headroom-operator-xds"]["spec"]["ingress"]
    assert 8080 not in [port["port"] for rule in policy for port in rule["ports"]]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"replica": 2}, "'replica' not allowed"),
        ({"replicas": 3}, "'/replicas': maximum: got 3, want 2"),
        ({"replicas": "2"}, "'/replicas': got string, want integer"),
        ({"tick": "100ms"}, "'/tick'"),
        ({"watch": {"namespace": "a"}}, "'/watch': additional properties 'namespace'"),
        ({"watch": {"namespaces": ["A_B"]}}, "'/watch/namespaces/0'"),
        ({"watch": {"namespaces": ["a", "a"]}}, "'/watch/namespaces': items at 0 and 1 are equal"),
        ({"image": {"digest": "latest"}}, "'/image/digest'"),
        ({"image": {"pullPolicy": "always"}}, "'/image/pullPolicy'"),
        ({"crds": {"enabled": True}}, "'/crds': additional properties 'enabled'"),
        ({"resources": {"requests": {"cpu": "much"}}}, "'/resources/requests/cpu'"),
        ({"resources": {"requests": {"gpu": 1}}}, "'/resources/requests': additional"),
        ({"env": [{"value": "x"}]}, "'/env/0': missing property 'name'"),
        ({"service": {"port": 0}}, "'/service/port': minimum"),
        ({"priorityClass": {"value": 2_000_000_000}}, "'/priorityClass/value': maximum"),
        ({"networkPolicy": {"enabled": "yes"}}, "'/networkPolicy/enabled': got string"),
        ({"gateway": {"replicas": 0}}, "'/gateway/replicas': minimum"),
        ({"gateway": {"workers": 0}}, "'/gateway/workers': minimum"),
        ({"gateway": {"image": {"name": "x"}}}, "'/gateway/image': additional properties 'name'"),
        ({"prometheus": {"sources": {"main": 9090}}}, "'/prometheus/sources/main': got number"),
        ({"prometheus": {"sources": {"main": "p:9090"}}}, "'/prometheus/sources/main': 'p:9090'"),
        ({"affinity": {"nodes": {}}}, "'/affinity': additional properties 'nodes'"),
        ({"monitoring": {"podMonitor": {"interval": "fast"}}}, "'/monitoring/podMonitor/interval'"),
        (
            {"monitoring": {each: {"enabled": True} for each in ("serviceMonitor", "podMonitor")}},
            "monitoring.serviceMonitor.enabled and monitoring.podMonitor.enabled",
        ),
    ],
    ids=str,
)
def test_a_bad_value_is_refused_with_its_name(
    helm: Helm, values: dict[str, Any], said: str
) -> None:
    with pytest.raises(ClusterError) as refusal:
        helm.template(CHART, values)
    assert said in str(refusal.value)


def test_an_older_kubernetes_is_refused(helm: Helm) -> None:
    with pytest.raises(ClusterError, match=r"requires kubeVersion: >=1\.30\.0-0"):
        helm.template(CHART, {}, "--kube-version", "1.29.9")
    helm.template(CHART, {}, "--kube-version", "1.30.0-gke.100")


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


def test_values_set_the_bounds_of_the_admission_policy(helm: Helm) -> None:
    chosen = {
        "maxPriority": -5,
        "maxTextBytes": 2000,
        "maxContainers": 3,
        "serviceAccounts": ["reader"],
        "restrictPodTemplate": False,
    }
    values = {"admissionPolicy": chosen, "watch": {"namespaces": ["a", "b"]}}
    rendered = helm.template(CHART, values)
    policy = of_kind(rendered, "ValidatingAdmissionPolicy")
    found = {one["name"]: one["expression"] for one in policy["spec"]["variables"]}
    assert {name: found[name] for name in chosen} == {
        "maxPriority": "-5",
        "maxTextBytes": "2000",
        "maxContainers": "3",
        "serviceAccounts": '["reader"]',
        "restrictPodTemplate": "false",
    }
    binding = of_kind(rendered, "ValidatingAdmissionPolicyBinding")["spec"]
    assert binding["policyName"] == policy["metadata"]["name"]
    (selector,) = binding["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert selector["values"] == ["a", "b"]
    without = helm.template(CHART, {"admissionPolicy": {"create": False}})
    assert not [one for one in without if one["kind"].startswith("Validating")]


def test_another_release_has_names_and_a_lease_of_its_own(helm: Helm) -> None:
    rendered = helm.template(CHART, {}, release="canary", namespace="elsewhere")
    ours = [each for each in rendered if each["kind"] != "CustomResourceDefinition"]
    assert all(each["metadata"]["name"].startswith("canary-headroom") for each in ours)
    deployment = of_kind(rendered, "Deployment")
    assert "--lease-name=canary-headroom-operator" in str(deployment)
    assert of_kind(rendered, "Role")["rules"][0]["resourceNames"] == ["canary-headroom-operator"]


def test_every_value_reaches_its_object(helm: Helm) -> None:
    rendered = helm.template(CHART, EVERYTHING)
    deployment = of_kind(rendered, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert deployment["spec"]["replicas"] == 2
    assert pod["containers"][0]["image"] == f"registry.example/headroom@sha256:{'0' * 64}"
    assert pod["containers"][0]["args"] == [
        *("run", "--tick=5s", "--max-replicas-per-service=40", "--max-accelerators=200"),
        "--not-accelerator=a.b/*",
        "--downloader-image=registry.example/fetch:2",
    ]
    assert pod["containers"][0]["env"] == EVERYTHING["env"]
    assert pod["tolerations"] == EVERYTHING["tolerations"]
    assert pod["nodeSelector"] == EVERYTHING["nodeSelector"]
    assert pod["affinity"] == EVERYTHING["affinity"]
    assert pod["imagePullSecrets"] == EVERYTHING["imagePullSecrets"]
    assert pod["priorityClassName"] == of_kind(rendered, "PriorityClass")["metadata"]["name"]
    assert of_kind(rendered, "PodDisruptionBudget")["spec"]["minAvailable"] == 1
    assert of_kind(rendered, "Service")["spec"]["ports"][0]["port"] == 9090
    assert of_kind(rendered, "NetworkPolicy")["spec"]["ingress"][0]["from"]
    labels = [each["metadata"]["labels"] for each in rendered]
    assert all(each["team"] == "platform" for each in labels)


def test_every_image_of_the_chart_can_be_pinned_by_its_digest(helm: Helm) -> None:
    """Images of containers, of the test's pod, and of what the operator starts."""
    pinned = {name: f"registry.example/{name}@sha256:{'a' * 64}" for name in ("own", "door", "get")}
    own, door = (
        {"repository": f"registry.example/{name}", "digest": f"sha256:{'a' * 64}", "tag": "1"}
        for name in ("own", "door")
    )
    values = {
        "image": own,
        "gateway": {"enabled": True, "image": door},
        "downloader": {"image": pinned["get"]},
    }
    text = json.dumps(helm.template(CHART, values))
    named = re.findall(r'"image": "([^"]+)"|--downloader-image=([^"]+)"', text)
    assert {"".join(each) for each in named} == set(pinned.values())


def test_crd_is_kept_on_uninstall_unless_disabled(helm: Helm) -> None:
    kept = of_kind(helm.template(CHART), "CustomResourceDefinition")
    assert kept["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    left = of_kind(helm.template(CHART, {"crds": {"keep": False}}), "CustomResourceDefinition")
    assert "annotations" not in left["metadata"]


def test_api_server_accepts_every_object_in_a_restricted_namespace(
    helm: Helm, cluster: Cluster, namespace: str
) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    cluster.kubectl("label", "namespace", namespace, label)
    rendered = helm.template(CHART, EVERYTHING, namespace=namespace)
    account = {
        "kind": "ServiceAccount",
        "apiVersion": "v1",
        "metadata": {"name": "headroom-operator"},
    }
    cluster.kubectl("apply", "-f", "-", "-n", namespace, stdin=json.dumps(account))
    template = of_kind(rendered, "Deployment")["spec"]["template"]
    template["spec"].pop("priorityClassName")  # the class is there only after a real install
    pod = {"apiVersion": "v1", "kind": "Pod"} | template
    pod["metadata"] |= {"name": "operator", "namespace": namespace}
    ours = [each for each in rendered if each["kind"] not in OF_PROMETHEUS_OPERATOR]
    items = {"apiVersion": "v1", "kind": "List", "items": [*ours, pod]}
    dry = ("apply", "--server-side", "--force-conflicts", "--dry-run=server")
    said = cluster.kubectl(*dry, "--validate=strict", "-f", "-", stdin=json.dumps(items))
    assert len(said.splitlines()) == len(ours) + 1
    assert "Warning" not in said

    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(ClusterError, match="violates PodSecurity"):
        cluster.kubectl(*dry, "-f", "-", stdin=json.dumps(pod))


def test_promtool_accepts_the_rules_and_every_alert_fires(promtool: Path) -> None:
    run([promtool, "check", "rules", ALERTS], what="checking the alerts")
    run([promtool, "test", "rules", ALERT_TESTS], what="testing the alerts")


def test_the_rule_of_the_chart_is_the_file_with_the_runbooks_address(helm: Helm) -> None:
    rule = of_kind(helm.template(CHART, EVERYTHING), "PrometheusRule")
    address = "runbook_url: https://runbooks.example/headroom.md#"
    assert rule["spec"] == yaml.safe_load(
        ALERTS.read_text().replace("runbook_url: RUNBOOK.md#", address)
    )


def test_the_dashboard_of_the_chart_is_the_file_and_promtool_can_read_its_queries(
    helm: Helm, promtool: Path, tmp_path: Path
) -> None:
    board = json.loads(DASHBOARD.read_text())
    packed = of_kind(helm.template(CHART, EVERYTHING), "ConfigMap")
    assert json.loads(packed["data"]["headroom.json"]) == board
    numbers = itertools.count()
    queries = [*expressions.of_dashboard(board).values(), *expressions.variables_of(board)]
    rules = [{"record": f"dashboard:{next(numbers)}", "expr": query} for query in queries]
    file = tmp_path / "queries.json"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    run([promtool, "check", "rules", "--lint=none", file], what="reading the dashboard's queries")


def test_packed_chart_is_complete_and_fits_a_release(helm: Helm, tmp_path: Path) -> None:
    helm("package", CHART, "--destination", tmp_path)
    (packed,) = tmp_path.glob("headroom-*.tgz")
    assert packed.stat().st_size < 200_000  # a release is stored in a Secret of at most 1 MiB
    assert helm.template(packed, EVERYTHING) == helm.template(CHART, EVERYTHING)
