"""The resource on a real API server: rejected specs, their messages, stored defaults."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.errors import ClusterError
from cluster.interface import Cluster
from headroom.api import InferenceService
from headroom.api.kind import API_VERSION, PLURAL
from headroom.api.schema.crd import custom_resource_definition
from headroom.profiles import PROFILES
from headroom.resources import desired_children
from scenarios.specs.invalid_servers import CUSTOM
from scenarios.specs.invalid_specs import INVALID_SPECS
from scenarios.specs.invalid_targets import TARGETED
from scenarios.specs.spec_cases import MINIMAL, InvalidSpec, changed

pytestmark = pytest.mark.clock

DEPLOY = Path(__file__).parents[3] / "deploy"
SAMPLES = sorted(DEPLOY.glob("samples/*.yaml"))
NAMESPACE = "schema"


@pytest.fixture(scope="module")
def cluster(control_plane: Cluster) -> Iterator[Cluster]:
    """A cluster that knows the resource, with a namespace for these tests."""
    control_plane.kubectl("apply", "--server-side", "-f", DEPLOY / "base" / "crd.yaml")
    control_plane.kubectl(
        *("wait", "--for=condition=Established", "--timeout=30s"),
        *("crd", "inferenceservices.headroom.dev"),
    )
    restricted = {
        f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")
    }
    control_plane.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": restricted},
        }
    )
    yield control_plane
    control_plane.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.mark.parametrize("case", INVALID_SPECS, ids=lambda case: case.why)
def test_invalid_spec_is_rejected_with_field_and_rule(cluster: Cluster, case: InvalidSpec) -> None:
    with pytest.raises(ClusterError) as refused:
        _create(cluster, case.body(), dry_run=True)
    assert "is invalid" in str(refused.value)
    assert case.named_field in re.sub(r"\[([a-z]+)\]", r".\1", str(refused.value))  # keys of maps
    assert case.says in str(refused.value)


def test_misspelt_field_is_rejected_instead_of_dropped(cluster: Cluster) -> None:
    body = changed(MINIMAL, "spec.scaling", {"minReplica": 2})
    with pytest.raises(ClusterError, match=r'unknown field "spec\.scaling\.minReplica"'):
        _create(cluster, body, dry_run=True)


def test_a_pod_template_may_not_be_laid_out_like_a_pod(cluster: Cluster) -> None:
    body = changed(MINIMAL, "spec.runtime.podTemplate", {"nodeSelector": {"gpu": "a"}})
    with pytest.raises(ClusterError, match=r"unknown field \"spec\.runtime\.podTemplate\.node"):
        _create(cluster, body, dry_run=True)


def test_omitted_fields_are_stored_with_the_operators_defaults(cluster: Cluster) -> None:
    stored = _create(cluster, changed(MINIMAL, "metadata.name", "left-out"))
    minimal = MINIMAL | {"metadata": stored["metadata"]}
    expected = InferenceService.parse(minimal).spec.manifest()
    del expected["runtime"]["port"]  # the profile's, so it is not fixed by what was the profile
    assert stored["spec"] == expected
    assert InferenceService.parse(stored).spec == InferenceService.parse(minimal).spec


@pytest.mark.parametrize("profile", sorted(set(PROFILES) - {"headroom"}))
def test_known_server_needs_only_a_batch_size(cluster: Cluster, profile: str) -> None:
    body = changed(MINIMAL, "spec.runtime", {"profile": profile, "maxBatchSize": 8, "image": "a:1"})
    stored = _create(cluster, body, dry_run=True)
    assert InferenceService.parse(stored).spec.runtime.server is PROFILES[profile]


def test_custom_server_needs_its_metrics(cluster: Cluster) -> None:
    stored = _create(cluster, changed(MINIMAL, "spec.runtime", CUSTOM), dry_run=True)
    assert InferenceService.parse(stored).spec.runtime.server.name == "custom"


def test_schedules_and_sources_are_stored_with_their_defaults(cluster: Cluster) -> None:
    office = {"name": "office", "start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "minReplicas": 20}
    body = changed(MINIMAL, "spec.scaling.schedules", [office])
    body = changed(body, "spec.telemetry", {"source": "Prometheus"})
    spec = _create(cluster, body, dry_run=True)["spec"]
    assert spec["scaling"]["schedules"] == [office | {"timeZone": "UTC"}]
    assert spec["telemetry"] == {"source": "Prometheus"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TARGETED, TARGETED | {"targetRef": TARGETED["targetRef"] | {"name": "another"}}),
        (TARGETED, TARGETED | {"targetRef": TARGETED["targetRef"] | {"kind": "StatefulSet"}}),
        (TARGETED, MINIMAL["spec"]),
        (MINIMAL["spec"], TARGETED),
    ],
    ids=["another name", "another kind", "an image instead", "a target instead"],
)
def test_scaled_target_is_immutable(
    cluster: Cluster, namespace: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    body = {**MINIMAL, "metadata": {"name": "minimal", "namespace": namespace}}
    cluster.apply({**body, "spec": before})
    with pytest.raises(
        ClusterError, match="targetRef must not be changed, added or removed"
    ) as refused:
        cluster.apply({**body, "spec": after})
    assert "spec.targetRef" in str(refused.value)
    cluster.apply({**body, "spec": before | {"drain": {"gracePeriod": "5s"}}})  # and nothing else


def test_external_scaling_works_only_within_bounds(cluster: Cluster, namespace: str) -> None:
    scaling = {"mode": "External", "minReplicas": 2, "maxReplicas": 6}
    body = changed(changed(MINIMAL, "spec.scaling", scaling), "spec.replicas", 3)
    cluster.apply({**body, "metadata": {"name": "minimal", "namespace": namespace}})
    scale = ("scale", "hisvc/minimal", "--namespace", namespace)
    cluster.kubectl(*scale, "--replicas=6")
    for outside in (0, 1, 7, 10**6):
        with pytest.raises(ClusterError, match=r"spec\.replicas"):
            cluster.kubectl(*scale, f"--replicas={outside}")
    assert cluster.get("hisvc", "minimal", "--namespace", namespace)["spec"]["replicas"] == 6


def test_service_in_auto_mode_rejects_external_scaling(cluster: Cluster, namespace: str) -> None:
    cluster.apply({**MINIMAL, "metadata": {"name": "minimal", "namespace": namespace}})
    with pytest.raises(ClusterError, match=r"replicas must be set where scaling\.mode is Ext"):
        cluster.kubectl("scale", "hisvc/minimal", "--replicas=3", "--namespace", namespace)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_sample_is_accepted_and_so_are_its_children(cluster: Cluster, sample: Path) -> None:
    stored = _create(cluster, yaml.safe_load(sample.read_text()))
    for child in desired_children(InferenceService.parse(stored)):
        cluster.kubectl(
            *("apply", "--server-side", "--dry-run=server", "--validate=strict"),
            *("--warnings-as-errors", "-f", "-"),
            stdin=json.dumps(child),
        )


@pytest.mark.parametrize(
    "model",
    [
        {"uri": "hf://acme/m@v1", "secretName": "hub", "digest": f"sha256:{'0' * 64}"},
        {"uri": "s3://bucket/m", "sizeLimit": "20Gi"},
        {"uri": "oci://registry.example/m@sha256:" + "0" * 64},
        {"uri": "pvc://claim/m"},
    ],
    ids=lambda model: model["uri"].partition(":")[0],
)
def test_a_model_from_anywhere_makes_a_pod_that_is_restricted(
    cluster: Cluster, namespace: str, model: dict[str, str]
) -> None:
    restricted = "pod-security.kubernetes.io/warn=restricted"
    cluster.kubectl("label", "namespace", namespace, restricted)
    body = changed(MINIMAL, "spec.model", model)
    body["metadata"] = {"name": "minimal", "namespace": namespace}
    cluster.apply(body)
    stored = cluster.get("hisvc", "minimal", "--namespace", namespace)
    deployment = desired_children(InferenceService.parse(stored))[-1]
    cluster.kubectl(
        *("apply", "--server-side", "--dry-run=server", "--validate=strict"),
        *("--warnings-as-errors", "-f", "-"),
        stdin=json.dumps(deployment),
    )


@pytest.mark.parametrize(
    ("profile", "promise"),
    [("vllm", "timeToFirstToken"), ("sglang", "timeToFirstToken"), ("tgi", "timePerOutputToken")],
)
def test_token_slo_needs_a_server_that_measures_it(
    cluster: Cluster, profile: str, promise: str
) -> None:
    runtime = {"image": "registry.example/server:1", "profile": profile, "maxBatchSize": 8}
    body = changed(MINIMAL, "spec.runtime", runtime)
    body = changed(body, f"spec.slo.{promise}", {"target": "500ms"})
    stored = _create(cluster, body, dry_run=True)["spec"]["slo"][promise]
    assert stored == {"percentile": 95, "target": "500ms"}


def test_the_shipped_manifests_are_accepted_without_a_warning(cluster: Cluster) -> None:
    cluster.kubectl("apply", "--server-side", "-f", DEPLOY / "base" / "namespace.yaml")
    cluster.kubectl(
        *("apply", "--server-side", "--dry-run=server", "--validate=strict"),
        *("--warnings-as-errors", "-k", DEPLOY / "overlays" / "local"),
    )


def test_an_explicit_null_of_a_pod_template_is_kept_as_a_removal(cluster: Cluster) -> None:
    template = {"spec": {"containers": [{"name": "server", "livenessProbe": None}]}}
    body = changed(MINIMAL, "spec.runtime.podTemplate", template)
    body["metadata"]["name"] = "without-liveness"
    stored = _create(cluster, body)
    assert stored["spec"]["runtime"]["podTemplate"] == template
    (container,) = desired_children(InferenceService.parse(stored))[-1]["spec"]["template"]["spec"][
        "containers"
    ]
    assert "livenessProbe" not in container


def test_status_in_an_applied_object_is_ignored(cluster: Cluster) -> None:
    body = changed(MINIMAL, "status", {"readyReplicas": 7})
    body["metadata"]["name"] = "boaster"
    assert "status" not in _create(cluster, body)


def test_the_installed_resource_is_what_the_code_generates(cluster: Cluster) -> None:
    installed = cluster.get("crd", "inferenceservices.headroom.dev")
    generated = custom_resource_definition()["spec"]["versions"][0]
    (version,) = installed["spec"]["versions"]
    assert version["schema"] == generated["schema"]
    assert not [c for c in installed["status"]["conditions"] if c["type"] == "NonStructuralSchema"]


def test_kubectl_explain_describes_the_slo(cluster: Cluster) -> None:
    explained = cluster.kubectl("explain", "inferenceservices.spec.slo.latency.target")
    assert "Maximum latency at the percentile." in explained


def _create(cluster: Cluster, body: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
    """Create as kubectl does, but raw: the server's message is not changed."""
    path = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/{PLURAL}?fieldValidation=Strict"
    metadata = body["metadata"] | {"namespace": NAMESPACE}
    stored: dict[str, Any] = cluster.raw.ask(
        "POST", path + ("&dryRun=All" if dry_run else ""), body | {"metadata": metadata}
    )
    return stored
