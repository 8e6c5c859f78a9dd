"""An InferenceService is parsed, or rejected with field and rule."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from api.schema_rules import SPEC_SCHEMA
from headroom.api import Duration, InferenceService, InvalidSpec
from headroom.profiles import CUSTOM, PROFILES
from headroom.scaling.values.policy import Policy, RateLimit, Routing
from scenarios.specs.invalid_specs import INVALID_SPECS
from scenarios.specs.spec_cases import InvalidSpec as InvalidCase
from support.service_world import service


def test_every_profile_can_be_chosen() -> None:
    chosen = SPEC_SCHEMA["properties"]["runtime"]["properties"]["profile"]["enum"]
    assert sorted(chosen) == sorted({*PROFILES, CUSTOM})


def test_minimal_body_gets_every_default() -> None:
    found = service()
    assert (found.name, found.namespace, found.generation) == ("resnet50", "vision", 3)
    assert found.model_name == "resnet50"
    assert found.warmup_max_latency == Duration.parse("250ms")
    assert found.spec.manifest() == {
        "runtime": {
            "profile": "headroom",
            "image": "registry.example/headroom-model-server:0.1.0",
            "port": 8000,
            "instances": 1,
            "args": [],
            "env": [],
            "resources": {},
            "podTemplate": {},
        },
        "model": {"uri": "", "sizeLimit": "100Gi"},
        "accelerator": {"resource": "nvidia.com/gpu", "count": 1},
        "warmup": {"requests": 16, "timeout": "10m"},
        "slo": {
            "latency": {"percentile": 95, "target": "250ms"},
            "utilizationCeiling": 0.8,
            "objective": 0.99,
        },
        "scaling": {
            "mode": "Auto",
            "minReplicas": 1,
            "scaleToZero": {"idleTimeout": "10m"},
            "maxReplicas": 20,
            "priority": 0,
            "replaceSlowReplicas": True,
            "rebalanceConnections": True,
            "scaleUp": {"stabilizationWindow": "0s"},
            "scaleDown": {"stabilizationWindow": "1m30s"},
            "schedules": [],
        },
        "routing": {
            "mode": "Service",
            "requestTimeout": "5m",
            "maxBodyBytes": 16777216,
            "maxUpgrades": 0,
            "trustedCIDRs": [],
            "classes": [],
            "traffic": [],
            "models": [],
        },
        "telemetry": {"source": "Pods"},
        "drain": {"gracePeriod": "1m"},
        "rollout": {},
        "commonMetadata": {},
    }


def test_explicit_values_override_defaults() -> None:
    found = service(
        spec__model={"name": "resnet50-v2"},
        spec__warmup={"maxLatency": "400ms"},
    )
    assert found.model_name == "resnet50-v2"
    assert found.warmup_max_latency.seconds == 0.4


def test_to_policy_copies_the_spec() -> None:
    found = service(
        spec__slo={
            "latency": {"percentile": 99, "target": "1.5s"},
            "queueDepth": 8,
            "utilizationCeiling": 0.6,
        },
        spec__scaling={
            "minReplicas": 2,
            "maxReplicas": 7,
            "priority": -3,
            "scaleUp": {"stabilizationWindow": "10s", "rate": {"period": "1m", "percent": 100}},
            "scaleDown": {"stabilizationWindow": "5m", "rate": {"period": "30s", "replicas": 1}},
        },
        spec__warmup={"timeout": "90s"},
    )
    assert found.to_policy(tick_s=1.0) == Policy(
        routing=Routing.STICKY,
        latency_target_s=1.5,
        latency_percentile=0.99,
        queue_depth=8,
        utilization_ceiling=0.6,
        min_replicas=2,
        max_replicas=7,
        priority=-3,
        scale_up_stabilization_s=10.0,
        scale_up_rate=RateLimit(period_s=60.0, percent=100),
        scale_down_stabilization_s=300.0,
        scale_down_rate=RateLimit(period_s=30.0, replicas=1),
        tick_s=1.0,
        warmup_timeout_s=90.0,
    )


def test_spec_defaults_equal_policy_defaults() -> None:
    assert service().to_policy() == Policy(latency_target_s=0.25, routing=Routing.STICKY)


@pytest.mark.parametrize("case", INVALID_SPECS, ids=lambda case: case.why)
def test_invalid_stored_spec_is_rejected_with_field_and_rule(case: InvalidCase) -> None:
    with pytest.raises(InvalidSpec) as refused:
        InferenceService.parse(_stored(case.body()))
    (problem,) = [p for p in refused.value.problems if p.field == case.named_field]
    assert (case.parser_says or case.says) in f"{problem.rule}; got {problem.got}"
    assert str(problem) in str(refused.value)
    assert len(problem.got) < 100


@pytest.mark.parametrize("containers", ["containers", "initContainers"])
def test_bytes_of_a_container_of_the_template_that_cannot_be_meant_are_refused(
    containers: str,
) -> None:
    requests = {"memory": "16", "cpu": "1"}
    one = {"name": "cache", "resources": {"requests": requests}}
    with pytest.raises(
        InvalidSpec, match=r"container cache: resources\.requests\.memory must be 0 or"
    ):
        service(spec__runtime__podTemplate={"spec": {containers: [one]}})
    requests["memory"] = "16Mi"
    assert service(spec__runtime__podTemplate={"spec": {containers: [one]}}).spec.runtime


def test_parse_reports_all_problems_with_values() -> None:
    with pytest.raises(InvalidSpec) as refused:
        service(
            metadata__name="Resnet",
            spec__slo__latency__target="2 days",
            spec__scaling={"minReplicas": 9, "maxReplicas": 3},
        )
    assert [(p.field, p.got) for p in refused.value.problems] == [
        ("metadata.name", '"Resnet"'),
        ("spec.slo.latency.target", '"2 days"'),
        ("spec.scaling.minReplicas", "minReplicas 9, maxReplicas 3"),
    ]


def test_an_invalid_profile_is_the_only_problem_though_the_port_follows_from_it() -> None:
    with pytest.raises(InvalidSpec) as refused:
        service(spec__runtime={"image": "registry.example/server:1", "profile": "Triton"})
    assert [(p.field, p.got) for p in refused.value.problems] == [
        ("spec.runtime.profile", '"Triton"')
    ]


EVENINGS = {
    "name": "evenings",
    "timeZone": "Europe/Berlin",
    "start": "0 18 * * *",
    "end": "0 22 * * *",
}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"spec__scaling": {"minReplicas": 25}}, "maxReplicas; got minReplicas 25, maxReplicas 20"),
        ({"spec__runtime": {}}, "(it scales an existing workload); got neither"),
        ({"spec__targetRef": {"name": "a"}}, "(it scales an existing workload); got both"),
        ({"spec__slo": {}}, "or timePerOutputToken; got nothing"),
        (
            {"spec__scaling": {"mode": "External", "maxReplicas": 2}, "spec__replicas": 7},
            "to scaling.maxReplicas; got 7, minReplicas 1, maxReplicas 2",
        ),
        (
            {"spec__scaling": {"maxReplicas": 2, "schedules": [EVENINGS | {"minReplicas": 4}]}},
            "scaling.maxReplicas; got minReplicas 4 in evenings, maxReplicas 2",
        ),
    ],
)
def test_broken_rule_says_what_it_compares(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        service(**changes)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"spec__runtime__port": "80"}, 'port: must be a whole number; got "80"'),
        ({"spec__runtime__port": 0}, "port: must be greater than or equal to 1; got 0"),
        ({"spec__slo__utilizationCeiling": "0.8"}, 'must be a number; got "0.8"'),
        ({"spec__slo": []}, "spec.slo: must be an object; got []"),
        ({"spec__scaling__mode": "Magic"}, "mode: must be 'Auto', "),
        ({"spec__runtime__args": ["x"] * 200}, "args: must have at most 128 items; got "),
        ({"spec__runtime__image": ["x"]}, 'image: must be a string; got ["x"]'),
    ],
)
def test_rules_of_the_library_are_in_the_words_of_all_others(
    changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidSpec) as refused:
        service(**changes)
    assert says in str(refused.value)
    assert "should" not in str(refused.value)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ([], "with at least one key"),
        ([{"kty": "EC"}] * 9, "with at most 8 keys"),
        ([{"kty": "EC", "crv": "P-521"}] * 3, "at most 2 keys of P-384 and P-521"),
        ([{"kty": "RSA", "n": "n" * 1366}], "RSA with at most 4096 bits"),
        ([{"kty": "EC", "d": "private"}], "must have public keys only"),
        ([{"kty": "EC"}], "must have a complete key"),
        ([{"kty": "OKP", "crv": "X25519", "x": "x" * 43}], "must have a complete key"),
        ([{"kty": "OKP", "crv": "Ed25519", "x": "x" * 42}], "must have a complete key"),
        ([{"kty": "RSA", "n": "n" * 342, "e": "AQAB", "alg": "ES256"}], "must have a complete key"),
    ],
)
def test_key_sets_are_small_and_public(keys: list[dict[str, str]], says: str) -> None:
    jwt = {"issuer": "https://issuer.example", "localJWKS": json.dumps({"keys": keys})}
    with pytest.raises(InvalidSpec, match=says):
        service(spec__routing={"jwt": jwt})


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "EC", "x": "x" * 43, "y": "y" * 43},
        {"kty": "EC", "crv": "P-521", "alg": "ES512", "x": "x" * 88, "y": "y" * 88},
        {"kty": "OKP", "crv": "Ed25519", "x": "x" * 43, "use": "sig", "kid": "1"},
        {"kty": "RSA", "n": "n" * 683, "e": "AQAB", "alg": "PS256"},
    ],
)
def test_key_set_needs_one_key_that_gateways_can_use(key: dict[str, str]) -> None:
    keys = {"keys": [{"kty": "RSA", "alg": "RSA-OAEP"}, key]}
    jwt = {"issuer": "https://issuer.example", "localJWKS": json.dumps(keys)}
    assert service(spec__routing={"jwt": jwt})


@pytest.mark.parametrize("ceiling", [math.nan, math.inf, -math.inf])
def test_utilization_ceiling_must_be_a_number(ceiling: float) -> None:
    with pytest.raises(InvalidSpec, match="must be a share from 0"):
        service(spec__slo__utilizationCeiling=ceiling)


def test_unknown_fields_are_ignored() -> None:
    assert service(spec__tenancy={"mode": "Fair"}).spec == service().spec


def test_spec_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        service().spec.scaling.max_replicas = 3  # type: ignore[misc]


def _stored(created: dict[str, Any]) -> dict[str, Any]:
    """Add the metadata that the API server would add."""
    return created | {"metadata": created["metadata"] | {"uid": "u", "generation": 1}}
