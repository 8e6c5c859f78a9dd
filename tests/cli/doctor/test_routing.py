"""Findings of the doctor about existing workloads behind the gateway."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headroom.api.reasons import StatusReason
from headroom.cli.commands.doctor.examination import examined
from headroom.cli.commands.doctor.findings import Severity
from support.fakes_doctor import TARGET_REF, UID, serving

VLLM = {"profile": "vllm", "maxBatchSize": 8, "metricsPort": 9090}


def findings(runtime: dict[str, Any], ports: list[dict[str, Any]], mode: str) -> list[str]:
    """Return why the port is wrong, for a target whose containers declare these ports."""
    spec = {"template": {"spec": {"containers": [{"name": "a"}, {"name": "b", "ports": ports}]}}}
    target = {"kind": "StatefulSet", "metadata": {"name": "my-vllm"}, "spec": spec}
    facts = serving(spec__targetRef=TARGET_REF, spec__runtime=runtime, spec__routing={"mode": mode})
    found = examined(replace(facts, targets={UID: target}))
    wrong = [one for one in found if one.finding is StatusReason.WRONG_PORT]
    assert all(one.severity is Severity.WARNING for one in wrong)
    return [one.why for one in wrong]


@pytest.mark.parametrize(
    ("runtime", "ports", "mode"),
    [
        (VLLM, [{"containerPort": 8000}, {"containerPort": 9090}], "Gateway"),
        (VLLM | {"port": 7000}, [{"containerPort": 7000, "name": "api"}], "Gateway"),
        (VLLM, [], "Gateway"),
        (VLLM, [{"containerPort": 53, "protocol": "UDP"}], "Gateway"),
        (VLLM, [{"containerPort": 8080}], "Service"),
    ],
)
def test_declared_or_undeclarable_port_is_no_finding(
    runtime: dict[str, Any], ports: list[dict[str, Any]], mode: str
) -> None:
    assert findings(runtime, ports, mode) == []


def test_port_that_the_gateway_uses_and_no_container_declares_is_named() -> None:
    (why,) = findings(VLLM, [{"containerPort": 9090}, {"containerPort": 8080}], "Gateway")
    assert "port 8000 (runtime.port)" in why
    assert "StatefulSet my-vllm declare 8080, 9090" in why


def policy(
    labels: dict[str, str], ingress: list[dict[str, Any]], namespace: str = "vision", **spec: Any
) -> dict[str, Any]:
    return {
        "metadata": {"name": "only-friends", "namespace": namespace},
        "spec": {"podSelector": {"matchLabels": labels}, "ingress": ingress} | spec,
    }


FRIENDS = [{"from": [{"podSelector": {"matchLabels": {"app": "friend"}}}]}]
OURS = {"headroom.dev/inference-service": "resnet50"}


@pytest.mark.parametrize(
    ("restricts", "mode", "found"),
    [
        pytest.param(policy(OURS, FRIENDS), "Gateway", True, id="of its pods"),
        pytest.param(policy({}, FRIENDS), "Gateway", True, id="of all pods"),
        pytest.param(policy({}, []), "Gateway", True, id="denies all"),
        pytest.param(policy(OURS, FRIENDS), "Service", False, id="no gateway"),
        pytest.param(policy(OURS, FRIENDS, "other"), "Gateway", False, id="another namespace"),
        pytest.param(policy({"app": "x"}, FRIENDS), "Gateway", False, id="other pods"),
        pytest.param(
            policy(OURS, [{"ports": [{"port": 8000}]}]), "Gateway", False, id="ports only"
        ),
        pytest.param(policy(OURS, [], policyTypes=["Egress"]), "Gateway", False, id="egress alone"),
    ],
)
def test_policy_that_a_gateway_undoes_is_named(
    restricts: dict[str, Any], mode: str, found: bool
) -> None:
    facts = serving(spec__routing={"mode": mode})
    said = [
        one
        for one in examined(replace(facts, policies=(restricts,)))
        if one.finding is StatusReason.POLICY_UNDONE
    ]
    assert len(said) == found
    if said:
        assert said[0].severity is Severity.WARNING
        assert "NetworkPolicy only-friends" in said[0].why
