"""What is sent to warm a pod: the service's request, or what its profile knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headroom.controller.warmup.request import Inputs, UnknownRequest, WarmupRequest, request_of
from headroom.profiles import PROFILES
from service_world import service

OTHER = {"image": "x", "maxBatchSize": 8}


def asked(profile: str, **spec: Any) -> WarmupRequest | Inputs | None:
    warmup = spec.pop("warmup", {"sender": "Operator"})
    changes = {f"spec__{key}": value for key, value in spec.items()}
    return request_of(
        service(spec__runtime={**OTHER, "profile": profile}, spec__warmup=warmup, **changes)
    )


def test_server_with_own_warmup_gets_no_request() -> None:
    assert request_of(service()) is None
    assert asked("vllm", warmup={}) is None
    assert asked("vllm", warmup={"sender": "Server"}) is None


def test_given_warmup_request_is_sent_unchanged() -> None:
    given = {"path": "/inference", "body": "{}", "contentType": "text/plain"}
    sent = WarmupRequest(path="/inference", body="{}", content_type="text/plain")
    assert asked("mosec", warmup={"request": given}) == sent
    assert asked("vllm", warmup={"sender": "Operator", "request": given}) == sent


def test_profile_request_is_used_by_default() -> None:
    known = {name for name, one in PROFILES.items() if one.warmup is not None}
    assert known == {"triton", "mlserver", "vllm", "sglang", "tgi", "tei"}
    for name in known:
        request = asked(name)
        if isinstance(request, WarmupRequest):
            assert isinstance(json.loads(request.body), dict)
            assert request.path.startswith("/")


def test_model_name_is_sent_only_if_given() -> None:
    unnamed, named = asked("vllm"), asked("vllm", model={"name": "llama-3"})
    assert isinstance(unnamed, WarmupRequest)
    assert isinstance(named, WarmupRequest)
    assert "model" not in json.loads(unnamed.body)
    assert json.loads(named.body)["model"] == "llama-3"


def test_inputs_follow_from_model_metadata() -> None:
    request = asked("triton", model={"name": "resnet"})
    assert request == Inputs(path="/v2/models/resnet", then="/v2/models/resnet/infer")
    said = {
        "name": "resnet",
        "inputs": [
            {"name": "X", "datatype": "FP32", "shape": [-1, 2, 3]},
            {"name": "IDS", "datatype": "INT64", "shape": [-1, -1]},
            {"name": "TEXT", "datatype": "BYTES", "shape": [1]},
        ],
    }
    made = request.request(json.dumps(said))
    assert made.path == "/v2/models/resnet/infer"
    assert json.loads(made.body)["inputs"] == [
        {"name": "X", "datatype": "FP32", "shape": [1, 2, 3], "data": [1.0] * 6},
        {"name": "IDS", "datatype": "INT64", "shape": [1, 1], "data": [1]},
        {"name": "TEXT", "datatype": "BYTES", "shape": [1], "data": ["1"]},
    ]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("<html>", "says no inputs"),
        ("{}", "says no inputs"),
        ('{"inputs": []}', "names no inputs"),
        ('{"inputs": [7]}', "says no inputs"),
        ('{"inputs": [{"name": "X", "datatype": "FP32", "shape": ["a"]}]}', "says no inputs"),
        ('{"inputs": [{"name": "X", "datatype": "FP16", "shape": [1]}]}', "FP16"),
        ('{"inputs": [{"name": "X", "datatype": "FP32", "shape": [4096, 4096]}]}', "16777216"),
    ],
)
def test_unknown_request_names_the_remedy(said: str, why: str) -> None:
    request = asked("mlserver")
    assert isinstance(request, Inputs)
    with pytest.raises(UnknownRequest, match=why) as refused:
        request.request(said)
    assert "give warmup.request" in str(refused.value)
