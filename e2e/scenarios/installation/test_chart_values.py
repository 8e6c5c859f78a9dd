"""Values of the chart: bad ones are refused with their name, good ones reach their object."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from chart.comparison import by_identity
from chart.helm import Helm
from chart.paths import CHART
from cluster import ClusterError
from scenarios.installation.rendered_chart import EVERYTHING, of_kind


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"replica": 2}, "'replica' not allowed"),
        ({"replicas": 3}, "'/replicas': maximum: got 3, want 2"),
        ({"replicas": "2"}, "'/replicas': got string, want integer"),
        (
            {"tick": "100ms"},
            "tick must be a whole number of ms or s from 200ms to 60s, such as 2s; got",
        ),
        ({"watch": {"namespace": "a"}}, "'/watch': additional properties 'namespace'"),
        ({"watch": {"namespaces": ["A_B"]}}, "'/watch/namespaces/0'"),
        ({"watch": {"namespaces": ["a", "a"]}}, "'/watch/namespaces': items at 0 and 1 are equal"),
        ({"image": {"digest": "latest"}}, "image.digest must be empty, or sha256: and 64"),
        ({"image": {"pullPolicy": "always"}}, "'/image/pullPolicy'"),
        ({"crds": {"enabled": True}}, "'/crds': additional properties 'enabled'"),
        ({"resources": {"requests": {"cpu": "much"}}}, "resources.requests.cpu must be a quantity"),
        ({"resources": {"requests": {"cpu": -1}}}, "resources.requests.cpu must be a quantity"),
        (
            {"gateway": {"resources": {"limits": {"cpu": "-1"}}}},
            "none, such as 100m or 128Mi; got -1",
        ),
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
        (
            {"prometheus": {"sources": {"Main": "http://p:9090"}}},
            "a name in prometheus.sources must be a DNS label",
        ),
        (
            {"prometheus": {"sources": {"main": "http://me:secret@p:9090"}}},
            "prometheus.sources.main must be a URL with only scheme, host, port and path",
        ),
        (
            {"prometheus": {"sources": {"main": "http://p:9090/?user=me"}}},
            "prometheus.sources.main must be a URL with only scheme, host, port and path",
        ),
        ({"affinity": {"nodes": {}}}, "'/affinity': additional properties 'nodes'"),
        (
            {"monitoring": {"podMonitor": {"interval": "fast"}}},
            "monitoring.podMonitor.interval must",
        ),
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


@pytest.mark.parametrize("text", ["123", "0x10", "1e3", "true", "null"])
def test_texts_that_look_like_numbers_or_booleans_stay_texts(helm: Helm, text: str) -> None:
    neutral = "zebra"

    def rendered(word: str) -> list[str]:
        values = {
            "image": {"repository": f"{word} #{word}: {word}"},
            "commonLabels": {"team": word},
            "serviceAccount": {"name": word},
            "priorityClass": {"create": True, "name": word},
            "downloader": {"image": word},
            "prometheus": {"sources": {word: f"http://{word}"}},
            "watch": {"namespaces": [word]},
            "networkPolicy": {"enabled": True},
            "monitoring": {each: {"enabled": True} for each in ("serviceMonitor", "dashboard")},
            "gateway": {"enabled": True, "image": {"repository": word}},
            "crds": {"install": False},
            "replicas": 2,
        }
        found = helm.template(CHART, values, release=word, namespace=word)
        texts = map(json.dumps, found)
        return sorted(
            one.replace(neutral, text).replace(neutral.upper(), text.upper()) for one in texts
        )

    assert rendered(text) == rendered(neutral)


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
