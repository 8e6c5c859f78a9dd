"""The Deployment: warm before ready, drained before termination, and user overrides."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.resources import deployment, desired_children, rolling_update
from resources.generated_pods import environment, pod, server
from support.service_world import service


def test_replicas_are_in_the_manifest_only_at_creation() -> None:
    assert "replicas" not in deployment.build(service())["spec"]
    for replicas in (0, 3):
        created = deployment.with_replicas(deployment.build(service()), replicas)
        assert created["spec"]["replicas"] == replicas
    assert desired_children(service())[-1] == deployment.build(service())


@pytest.mark.parametrize(
    ("timeout", "period_s"),
    [("1s", 1), ("45s", 1), ("10m", 1), ("11m", 2), ("30m", 3), ("1h", 5), ("24h", 5)],
)
def test_startup_probe_outlasts_the_warm_up(timeout: str, period_s: int) -> None:
    found = service(spec__warmup__timeout=timeout)
    probe = server(spec__warmup__timeout=timeout)["startupProbe"]
    allowed_s = probe["periodSeconds"] * probe["failureThreshold"]
    warmup_s = found.spec.warmup.timeout.seconds
    assert probe["periodSeconds"] == period_s
    assert warmup_s + 30 <= allowed_s <= warmup_s + 40
    assert deployment.build(found)["spec"]["progressDeadlineSeconds"] > allowed_s


def test_readiness_probes_warmth_and_liveness_does_not() -> None:
    container = server()
    paths = {name: container[name]["httpGet"]["path"] for name in container if "Probe" in name}
    assert paths == {
        "startupProbe": "/v2/health/ready",
        "readinessProbe": "/v2/health/ready",
        "livenessProbe": "/v2/health/live",
    }


@pytest.mark.parametrize(("drain", "grace_s"), [("1s", 14), ("60s", 73), ("1500ms", 15)])
def test_termination_grace_covers_endpoints_drain_and_exit(drain: str, grace_s: int) -> None:
    spec = pod(spec__drain__gracePeriod=drain)
    assert spec["terminationGracePeriodSeconds"] == grace_s
    assert spec["containers"][0]["lifecycle"] == {"preStop": {"sleep": {"seconds": 3}}}


@pytest.mark.parametrize("count", [0, 1, 8])
def test_rollout_surges_and_is_left_to_the_operator_with_accelerators(count: int) -> None:
    made = service(spec__accelerator__count=count)
    manifest = deployment.build(made)
    assert rolling_update.of(manifest) == rolling_update.SURGE
    assert rolling_update.is_chosen_here(made, manifest) == (count > 0)


@pytest.mark.parametrize(
    ("given", "gpus", "surge", "unavailable"),
    [
        ({"maxSurge": 1}, 1, 1, 0),
        ({"maxSurge": "50%"}, 1, "50%", 0),
        ({"maxSurge": 0}, 0, 0, 1),
        ({"maxSurge": "0%"}, 0, "0%", 1),
        ({"maxUnavailable": 2}, 1, 0, 2),
        ({"maxUnavailable": 2}, 0, 1, 2),
        ({"maxUnavailable": 0}, 1, 1, 0),
        ({"maxSurge": 2, "maxUnavailable": 3}, 1, 2, 3),
    ],
)
def test_rollout_is_as_the_spec_says(
    given: dict[str, Any], gpus: int, surge: int | str, unavailable: int | str
) -> None:
    made = service(spec__accelerator__count=gpus, spec__rollout=given)
    manifest = deployment.build(made)
    rolling = manifest["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxSurge": surge, "maxUnavailable": unavailable}
    assert not rolling_update.is_chosen_here(made, manifest)


@pytest.mark.parametrize(
    ("accelerator", "resources", "expected"),
    [
        ({}, {}, {"limits": {"nvidia.com/gpu": "1"}}),
        ({"count": 0}, {}, {}),
        ({"count": 2, "resource": "amd.com/gpu"}, {}, {"limits": {"amd.com/gpu": "2"}}),
        (
            {},
            {"limits": {"memory": "1Gi"}, "requests": {"cpu": 1}},
            {"limits": {"memory": "1Gi", "nvidia.com/gpu": "1"}, "requests": {"cpu": 1}},
        ),
    ],
)
def test_accelerators_are_added_to_the_users_limits(
    accelerator: dict[str, Any], resources: dict[str, Any], expected: dict[str, Any]
) -> None:
    changes = {"spec__accelerator": accelerator, "spec__runtime__resources": resources}
    assert server(**changes)["resources"] == expected


@pytest.mark.parametrize(
    ("uri", "seen", "claim"),
    [
        ("", "", None),
        ("file:///opt/model", "file:///opt/model", None),
        ("pvc://models", "file:///models", "models"),
        ("pvc://models/", "file:///models", "models"),
        ("pvc://models/vision/resnet50", "file:///models/vision/resnet50", "models"),
    ],
)
def test_volume_claim_is_mounted_read_only_as_a_file_uri(
    uri: str, seen: str, claim: str | None
) -> None:
    spec = pod(spec__model__uri=uri)
    assert environment(spec__model__uri=uri)["HEADROOM_MODEL_URI"] == seen
    claims = [v["persistentVolumeClaim"] for v in spec["volumes"] if v["name"] == "model"]
    mounts = [m for m in spec["containers"][0]["volumeMounts"] if m["name"] == "model"]
    if claim is None:
        assert (claims, mounts) == ([], [])
    else:
        assert claims == [{"claimName": claim, "readOnly": True}]
        assert mounts == [{"name": "model", "mountPath": "/models", "readOnly": True}]


def test_durations_are_passed_to_the_server_in_seconds() -> None:
    seen = environment(
        spec__slo__latency__target="250ms",
        spec__warmup={"timeout": "23h59m59.999s"},
        spec__drain__gracePeriod="1s0.001ms",
    )
    assert seen["HEADROOM_WARMUP_MAX_LATENCY_S"] == "0.25"
    assert seen["HEADROOM_WARMUP_TIMEOUT_S"] == "86399.999"
    assert seen["HEADROOM_DRAIN_GRACE_S"] == "1.000001"
    assert seen["HEADROOM_MODEL_NAME"] == "resnet50"


@pytest.mark.parametrize(
    ("slo", "changed"),
    [
        ({"latency": {"target": "250ms"}}, {"latency": {"target": "300ms"}}),
        ({"timePerOutputToken": {"target": "30ms"}}, {"timePerOutputToken": {"target": "40ms"}}),
    ],
)
def test_slo_change_is_a_rollout_only_where_warmup_follows_it(
    slo: dict[str, Any], changed: dict[str, Any]
) -> None:
    assert pod(spec__slo=slo) != pod(spec__slo=changed)
    warmup = {"maxLatency": "1s"}
    assert pod(spec__slo=slo, spec__warmup=warmup) == pod(spec__slo=changed, spec__warmup=warmup)


def test_classes_with_promises_are_passed_to_the_server() -> None:
    chat = {"name": "chat", "priority": 1, "deadline": "30s"}
    batch = {"name": "batch", "bestEffort": True}
    tokens = {"timePerOutputToken": {"target": "80ms"}}
    plain = environment(spec__slo=tokens, spec__routing={"classes": [chat]})
    assert "HEADROOM_SLO_CLASSES" not in plain, "no class has a promise of its own"
    own = chat | {"timePerOutputToken": {"target": "60ms"}}
    found = environment(spec__slo=tokens, spec__routing={"classes": [own]})
    assert found["HEADROOM_SLO_CLASSES"] == '{"chat":{"priority":1,"deadline_s":30.0}}'
    assert "HEADROOM_TIME_PER_TOKEN_S" not in found
    filled = environment(spec__slo=tokens, spec__routing={"classes": [own, batch]})
    assert filled["HEADROOM_SLO_CLASSES"].endswith(',"batch":{"batch":true}}')
    assert filled["HEADROOM_TIME_PER_TOKEN_S"] == "0.06"
    given = [{"name": "HEADROOM_TIME_PER_TOKEN_S", "value": "0.05"}]
    said = server(spec__slo=tokens, spec__routing={"classes": [batch]}, spec__runtime__env=given)
    said = said["env"]
    assert [one["value"] for one in said if one["name"] == given[0]["name"]] == ["0.05"]


def test_grpc_port_is_passed_to_the_server() -> None:
    assert "HEADROOM_GRPC_PORT" not in environment()
    assert environment(spec__routing__grpcPort=9000)["HEADROOM_GRPC_PORT"] == "9000"
    own = [{"name": "HEADROOM_GRPC_PORT", "value": "9001"}]
    said = server(spec__routing__grpcPort=9000, spec__runtime__env=own)["env"]
    assert [one["value"] for one in said if one["name"] == "HEADROOM_GRPC_PORT"] == ["9001"]


def test_pod_meets_the_restricted_pod_security_standard() -> None:
    spec = pod()
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
