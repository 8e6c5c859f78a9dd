"""Any input to the parsers is served or refused with a safe 4xx: no 500, no traceback."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import strategies as st

from headroom_server.errors import RequestError
from headroom_server.open_inference_grpc import messages
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.protocols.contract import Contract
from headroom_server.protocols.open_inference import parse
from headroom_server.protocols.typed_json import TypedJsonCodec
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from support.bent_values import bent, mangled
from support.fuzzing import fuzz

pytestmark = pytest.mark.clock


SIGNATURE = Signature(
    (
        TensorSpec("x", "FP32", (2,)),
        TensorSpec("on", "BOOL"),
        TensorSpec("tokens", "INT16", (-1,)),
        TensorSpec("half", "FP16"),
        TensorSpec("text", "BYTES"),
    ),
    (TensorSpec("y", "FP64"),),
    lengths=(4, 8),
)


CONTRACT = Contract(SIGNATURE, max_items=3)


FORM = TypedJsonCodec(CONTRACT)


V2: dict[str, Any] = {
    "id": "7",
    "inputs": [
        {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1.5, 2]},
        {"name": "on", "shape": [1], "datatype": "BOOL", "data": [True]},
        {"name": "tokens", "shape": [1, 3], "datatype": "INT16", "data": [[5, 6, 7]]},
        {"name": "half", "shape": [1], "datatype": "FP16", "data": [0.5]},
        {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["ab"]},
    ],
    "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
    "parameters": {"timeout": 1_000_000},
}


SIZES = (8, 1, 6, 2, 6)


BINARY = {
    "inputs": [
        {k: v for k, v in tensor.items() if k != "data"}
        | {"parameters": {"binary_data_size": size}}
        for tensor, size in zip(V2["inputs"], SIZES, strict=True)
    ]
}


TAIL = struct.pack("<2f?3heI2s", 1.5, 2, True, 5, 6, 7, 0.5, 2, b"ab")


TYPED = {"instances": [{"x": [1.5, 2], "on": True, "tokens": [5, 6, 7], "half": 0.5, "text": "ab"}]}


def as_json(value: Any) -> bytes:
    """With NaN and infinity as Python's own writer has them, which is not JSON."""
    import json  # noqa: PLC0415

    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def parses_or_refuses(parsing: Callable[[], Any]) -> Any:
    try:
        return parsing()
    except RequestError as error:
        safe = 400 <= error.status < 500 and len(error.message) < 400
        assert safe, error.message  # noqa: PT017 - either way is right
        return None


def fits(work: Any) -> None:
    assert 1 <= work.items <= 3
    assert 1 <= work.length <= 8
    for spec in SIGNATURE.inputs:
        assert spec.count(work.inputs[spec.name]) == spec.elements_at(work.length) * work.items


def test_unmutated_requests_are_served() -> None:
    for asked in (
        parse(CONTRACT, as_json(V2)),
        parse(CONTRACT, as_json(BINARY) + TAIL, len(as_json(BINARY))),
    ):
        fits(asked.work)
    fits(FORM.parse(as_json(TYPED)))


def test_fuzzed_open_inference_bodies_are_handled() -> None:
    def check(example: tuple[bytes, int | None]) -> None:
        asked = parses_or_refuses(lambda: parse(CONTRACT, *example))
        if asked is not None:
            fits(asked.work)

    bodies = bent(V2).map(as_json) | st.just(as_json(V2)).flatmap(mangled)
    fuzz(bodies.map(lambda body: (body, None)), check, examples=100)


def test_fuzzed_binary_bodies_are_handled() -> None:
    def check(example: tuple[Any, bytes, int]) -> None:
        head, tail = as_json(example[0]), example[1]
        body, head_bytes = head + tail, len(head) + example[2]
        asked = parses_or_refuses(lambda: parse(CONTRACT, body, head_bytes))
        if asked is not None:
            fits(asked.work)

    shifts = st.just(0) | st.integers(-3, 3) | st.sampled_from([-(10**6), 10**6])
    fuzz(st.tuples(bent(BINARY), mangled(TAIL), shifts), check, examples=100)


def test_fuzzed_typed_json_bodies_are_handled() -> None:
    def check(body: bytes) -> None:
        work = parses_or_refuses(lambda: FORM.parse(body))
        if work is not None:
            fits(work)

    fuzz(bent(TYPED).map(as_json) | st.just(as_json(TYPED)).flatmap(mangled), check, examples=100)


def test_fuzzed_grpc_messages_are_handled() -> None:
    request = pb.ModelInferRequest(
        inputs=[
            {key: tensor[key] for key in ("name", "shape", "datatype")} for tensor in V2["inputs"]
        ],
        raw_input_contents=[TAIL[begin:end] for begin, end in pairwise(accumulate((0, *SIZES)))],
        parameters={"timeout": pb.InferParameter(int64_param=5)},
    )
    assert parses_or_refuses(lambda: messages.parse(CONTRACT, request)) is not None

    def check(raw: bytes) -> None:
        try:
            bent_request = pb.ModelInferRequest.FromString(raw)
        except Exception as error:  # noqa: BLE001 - what the library raises is the question
            assert type(error).__name__ == "DecodeError"  # noqa: PT017
            return
        asked = parses_or_refuses(lambda: messages.parse(CONTRACT, bent_request))
        if asked is not None:
            fits(asked.work)

    fuzz(mangled(request.SerializeToString()), check, examples=100)
