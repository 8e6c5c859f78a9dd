"""Pods of other model servers: own probes, ports and arguments, no Headroom variables."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.api import InferenceService
from headroom.resources import deployment
from support.service_world import service


def container(**runtime: Any) -> dict[str, Any]:
    service = InferenceService.parse(
        {
            "metadata": {"name": "llm", "namespace": "shop", "uid": "u"},
            "spec": {
                "runtime": {"image": "x", "maxBatchSize": 64, **runtime},
                "slo": {"latency": {"target": "30s"}},
            },
        }
    )
    built: dict[str, Any] = deployment.build(service)["spec"]["template"]["spec"]["containers"][0]
    return built


@pytest.mark.parametrize(
    ("profile", "port", "ready", "live"),
    [
        ("vllm", 8000, "/health", "/health"),
        ("sglang", 30000, "/health_generate", "/health"),
        ("triton", 8000, "/v2/health/ready", "/v2/health/live"),
        ("torchserve", 8080, "/ping", "/ping"),
    ],
)
def test_probes_and_port_come_from_the_profile(
    profile: str, port: int, ready: str, live: str
) -> None:
    one = container(profile=profile)
    assert one["ports"][0]["containerPort"] == port
    assert one["startupProbe"]["httpGet"]["path"] == ready
    assert one["readinessProbe"]["httpGet"]["path"] == ready
    assert one["livenessProbe"]["httpGet"]["path"] == live
    assert one["env"] == []


@pytest.mark.parametrize(
    ("given", "args"),
    [
        ([], ["--max-num-seqs=64"]),
        (["--model", "m"], ["--model", "m", "--max-num-seqs=64"]),
        (["--max-num-seqs", "32"], ["--max-num-seqs", "32"]),
        (["--max-num-seqs=32"], ["--max-num-seqs=32"]),
    ],
)
def test_batch_bound_is_an_argument_unless_given(given: list[str], args: list[str]) -> None:
    assert container(profile="vllm", args=given)["args"] == args


def template(warmup: dict[str, Any], **runtime: Any) -> dict[str, Any]:
    changes = {"profile": "vllm", "image": "x", "maxBatchSize": 64, **runtime}
    found = service(spec__runtime=changes, spec__warmup=warmup)
    built: dict[str, Any] = deployment.build(found)["spec"]["template"]
    return built


def test_operator_warmed_pods_have_the_readiness_gate_once_and_keep_the_users() -> None:
    own = [{"conditionType": "example.com/a"}, {"conditionType": "headroom.dev/warm"}]
    pod_template = {"spec": {"readinessGates": own}}
    gated = template({"sender": "Operator"}, podTemplate=pod_template)
    assert gated["spec"]["readinessGates"] == own
    assert gated["metadata"]["labels"]["headroom.dev/warmed-for"] == "resnet50"
    plain = template({})
    assert "readinessGates" not in plain["spec"]
    assert "headroom.dev/warmed-for" not in plain["metadata"]["labels"]


def test_server_configured_elsewhere_gets_no_argument() -> None:
    assert "args" not in container(profile="triton")
