"""The rendered chart compared with the plain manifests, and at the API server."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from chart.comparison import by_identity
from chart.helm import Helm, objects
from chart.paths import BASE, CHART, COMPONENT
from cluster import Cluster, ClusterError, ControlPlane
from scenarios.installation.rendered_chart import EVERYTHING, of_kind

OF_PROMETHEUS_OPERATOR = {"ServiceMonitor", "PodMonitor", "PrometheusRule"}


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> ControlPlane:
    return control_plane


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


def test_packed_chart_is_complete_and_fits_a_release(helm: Helm, tmp_path: Path) -> None:
    helm("package", CHART, "--destination", tmp_path)
    (packed,) = tmp_path.glob("headroom-*.tgz")
    assert packed.stat().st_size < 200_000  # a release is stored in a Secret of at most 1 MiB
    assert helm.template(packed, EVERYTHING) == helm.template(CHART, EVERYTHING)
