"""The manifests of whole services match the golden files; UPDATE_GOLDEN=1 rewrites them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from headroom.api import InferenceService
from headroom.resources import desired_children, endpoint_slice
from headroom.resources.service import build_routed
from support.service_world import service

GOLDEN = Path(__file__).parent / "golden"
DEPLOY = Path(__file__).parents[2] / "deploy"

SAMPLES = sorted((DEPLOY / "samples").glob("*.yaml"))


def from_sample(path: Path) -> InferenceService:
    body = yaml.safe_load(path.read_text())
    body["metadata"] |= {"namespace": "default", "uid": "00000000-0000-0000-0000-000000000000"}
    return InferenceService.parse(body)


SERVICES: dict[str, InferenceService] = {
    "minimal": service(),
    "everything": service(
        spec__runtime={
            "image": "registry.example/headroom-model-server:0.1.0",
            "port": 9000,
            "args": ["--log-level", "debug"],
            "env": [
                {"name": "HEADROOM_ENGINE", "value": "torch"},
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
            ],
            "resources": {"requests": {"cpu": 2, "memory": "8Gi"}, "limits": {"memory": "16Gi"}},
            "podTemplate": {
                "metadata": {"labels": {"team": "vision"}, "annotations": {"example.com/a": "b"}},
                "spec": {
                    "nodeSelector": {"gpu": "l4"},
                    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                    "containers": [
                        {
                            "name": "server",
                            "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
                            "securityContext": {"readOnlyRootFilesystem": None},
                        },
                        {"name": "sidecar", "image": "registry.example/sidecar:1"},
                    ],
                    "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
                },
            },
        },
        spec__model={"name": "resnet50-v2", "uri": "pvc://models/vision/resnet50"},
        spec__accelerator={"resource": "nvidia.com/mig-1g.10gb", "count": 2},
        spec__warmup={"requests": 32, "maxLatency": "400ms", "timeout": "1h"},
        spec__drain={"gracePeriod": "90s"},
    ),
    "model-from-hugging-face": service(
        spec__model={
            "uri": "hf://acme/resnet50@5c38ec7c405ec4b44b94cc5a9bb96e735b38267a",
            "digest": f"sha256:{'ab' * 32}",
            "secretName": "hub",
            "sizeLimit": "2Gi",
        },
        spec__runtime__resources={"requests": {"cpu": 1}, "limits": {"memory": "4Gi"}},
    ),
    "model-from-s3": service(spec__model={"uri": "s3://models/vision/resnet50"}),
    "model-in-an-image": service(spec__model={"uri": "oci://registry.example/resnet50:1"}),
    "warmed-by-the-operator": service(
        spec__runtime={
            "image": "registry.example/ranker:1",
            "profile": "mosec",
            "maxBatchSize": 8,
            "podTemplate": {
                "spec": {"readinessGates": [{"conditionType": "example.com/registered"}]}
            },
        },
        spec__warmup={"request": {"path": "/inference", "body": '{"x": [1]}'}},
    ),
    "without-accelerator": service(spec__accelerator={"count": 0}),
    "common-metadata": service(
        spec__commonMetadata={
            "labels": {"team": "vision", "example.com/cost-center": "4711"},
            "annotations": {"example.com/role": "models-reader"},
        },
        spec__runtime__podTemplate={"metadata": {"labels": {"team": "vision-batch"}}},
        spec__routing={"mode": "Gateway"},
    ),
    **{f"sample-{path.stem}": from_sample(path) for path in SAMPLES},
}


@pytest.mark.parametrize("name", SERVICES)
def test_children_match_the_golden_files(
    name: str,
) -> None:
    rendered = yaml.safe_dump_all(desired_children(SERVICES[name]), sort_keys=False, width=100)
    golden = GOLDEN / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(rendered)
    assert rendered == golden.read_text(), "review, then write again with UPDATE_GOLDEN=1"


def test_every_golden_file_has_a_service() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_every_child_has_the_same_name_labels_and_owner(name: str) -> None:
    owner = SERVICES[name]
    for child in desired_children(owner):
        metadata: dict[str, Any] = child["metadata"]
        assert metadata["name"] in (
            owner.name,
            f"{owner.name}-replicas",
        )  # the latter: Gateway mode
        assert metadata["namespace"] == owner.namespace
        given = owner.spec.common_metadata
        assert metadata["labels"] == {
            **(given.labels or {}),
            "app.kubernetes.io/managed-by": "headroom",
            "app.kubernetes.io/name": owner.name,
            "headroom.dev/inference-service": owner.name,
        }
        assert metadata.get("annotations") == given.annotations
        (reference,) = metadata["ownerReferences"]
        assert (reference["uid"], reference["controller"]) == (owner.uid, True)


def test_slice_and_service_of_the_gateway_have_the_common_metadata_and_their_own() -> None:
    owner = SERVICES["common-metadata"]
    routed = build_routed(owner)
    leading = endpoint_slice.build(owner, ["10.0.0.1"], 9000)
    for child in (routed, leading):
        assert child["metadata"]["labels"]["example.com/cost-center"] == "4711"
        assert child["metadata"]["annotations"] == {"example.com/role": "models-reader"}
    assert leading["metadata"]["labels"]["kubernetes.io/service-name"] == owner.name
