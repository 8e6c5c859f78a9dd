"""Warm-up request of a pod: the one of its service, or the one that its profile knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headroom.controller.warmup.request import Inputs, UnknownRequest, WarmupRequest, request_of
from headroom.profiles import PROFILES
from headroom.profiles.open_inference import MOST_ELEMENTS, MOST_INPUTS, RepeatedText
from support.service_world import service

OTHER = {"image": "x", "maxBatchSize": 8}


def asked(profile: str, **spec: Any) -> WarmupRequest | Inputs | None:
    warmup = spec.pop("warmup", {"sender": "Operator"})
    changes = {f"spec__{key}": value for key, value in spec.items()}
    return request_of(
        service(spec__runtime={**OTHER, "profile": profile}, spec__warmup=warmup, **changes)
    )


def sent(request: WarmupRequest) -> Any:
    body = request.body
    return json.loads(body if isinstance(body, str) else b"".join(body.chunks()))


def described(shape: str = "[1]", name: str = "X", datatype: str = "FP32") -> str:
    return f'{{"name": "{name}", "datatype": "{datatype}", "shape": {shape}}}'


def metadata(*inputs: str) -> str:
    return '{"inputs": [' + ", ".join(inputs) + "]}"


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
    assert known == {*("triton", "mlserver", "vllm", "sglang", "tgi", "tei"), "llamacpp", "trtllm"}
    for name in known:
        request = asked(name)
        if isinstance(request, WarmupRequest):
            assert isinstance(sent(request), dict)
            assert request.path.startswith("/")


def test_model_name_is_sent_only_if_given() -> None:
    unnamed, named = asked("vllm"), asked("vllm", model={"name": "llama-3"})
    assert isinstance(unnamed, WarmupRequest)
    assert isinstance(named, WarmupRequest)
    assert "model" not in sent(unnamed)
    assert sent(named)["model"] == "llama-3"


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
    assert sent(made)["inputs"] == [
        {"name": "X", "datatype": "FP32", "shape": [1, 2, 3], "data": [1.0] * 6},
        {"name": "IDS", "datatype": "INT64", "shape": [1, 1], "data": [1]},
        {"name": "TEXT", "datatype": "BYTES", "shape": [1], "data": ["1"]},
    ]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("<html>", "JSON"),
        ("[" * 65_000, "RecursionError"),
        ("{}", "got no list"),
        ("[]", "got no list"),
        (metadata(), "got 0"),
        ('{"inputs": [7]}', "got int"),
        (metadata(described('["a"]')), "a shape"),
        (metadata(described("[1.5]")), "a shape"),
        (metadata(described("[true]")), "a shape"),
        (metadata(described("[Infinity]")), "a shape"),
        (metadata(described("[1e400]")), "a shape"),
        (metadata(described("[1]", datatype="FP16")), "FP16"),
        (metadata(described("[4096, 4096]")), f"at most {MOST_ELEMENTS}"),
        (metadata(described(f"[{9**4000}]")), f"at most {MOST_ELEMENTS}"),
        (metadata(described(f"[{'1, ' * 32}1]")), "32 dimensions"),
        (metadata(described("[1048576]", "A"), described("[1]", "B")), "input 'B' exceeds"),
        (metadata(*[described()] * (MOST_INPUTS + 1)), f"got {MOST_INPUTS + 1}"),
    ],
)
def test_unknown_request_names_the_remedy(said: str, why: str) -> None:
    request = asked("mlserver")
    assert isinstance(request, Inputs)
    with pytest.raises(UnknownRequest, match=why) as refused:
        request.request(said)
    assert "give warmup.request" in str(refused.value)


def test_request_of_many_ones_is_kept_in_pieces() -> None:
    """One is kept for each pod that is being warmed; built, each of these would have 5 MiB."""
    request = asked("triton")
    assert isinstance(request, Inputs)
    half = f"[-1, {MOST_ELEMENTS // 2}]"
    made = request.request(metadata(described(half, "A"), described(half, "B", "BOOL")))
    assert isinstance(made.body, RepeatedText)
    assert sum(len(text) for text, _ in made.body.pieces) < 300
    chunks = [*made.body.chunks()]
    assert max(len(chunk) for chunk in chunks) <= 1 << 16
    assert made.body.size == sum(len(chunk) for chunk in chunks) > 5 << 20
    first, second = sent(made)["inputs"]
    assert first["data"] == [1.0] * (MOST_ELEMENTS // 2)
    assert second["data"] == [True] * (MOST_ELEMENTS // 2)


def test_request_of_many_inputs_is_not_kept_for_each_pod() -> None:
    few, many = (
        Inputs(path="/m", then="/i").request(
            metadata(*(described(name=f"X{n}") for n in range(count)))
        )
        for count in (4, 200)
    )
    assert few.is_small
    assert not many.is_small
