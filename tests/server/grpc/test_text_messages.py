"""Messages for generated text: which are parsed, errors of the others, and the last response."""

from __future__ import annotations

from typing import Any

import pytest

from headroom_server.errors import InvalidRequestError, QueueFullError, RequestError
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.failures import failure
from headroom_server.open_inference_grpc.text_requests import parse_text_request
from headroom_server.protocols.open_inference import MAX_ID_CHARACTERS


def tensor(name: str, datatype: str = "BYTES", shape: tuple[int, ...] = (1,), **values: Any) -> Any:
    contents = pb.InferTensorContents(**values) if values else None
    return pb.ModelInferRequest.InferInputTensor(
        name=name, datatype=datatype, shape=shape, contents=contents
    )


TEXT = tensor("text_input", bytes_contents=[b"abc"])
STREAM = tensor("stream", "BOOL", bool_contents=[True])
RAW = tensor("text_input"), tensor("stream", "BOOL")


def raw(*contents: bytes, inputs: tuple[Any, ...] = (tensor("text_input"),)) -> dict[str, Any]:
    return {"inputs": inputs, "raw_input_contents": contents}


def output(name: str) -> dict[str, Any]:
    asked = pb.ModelInferRequest.InferRequestedOutputTensor(name=name)
    return {"inputs": [TEXT], "outputs": [asked]}


@pytest.mark.parametrize(
    ("fields", "streams", "in_parts"),
    [
        pytest.param({"inputs": [TEXT]}, True, True, id="a stream's answer comes in parts"),
        pytest.param({"inputs": [TEXT]}, False, False, id="one call has one answer"),
        pytest.param({"inputs": [tensor("text_input", shape=(1, 1), bytes_contents=[b"abc"])]},
                     True, True, id="a batch of one"),
        pytest.param({"inputs": [TEXT], "id": "i" * MAX_ID_CHARACTERS}, True, True, id="long id"),
        pytest.param(output("text_output"), True, True, id="the output by its name"),
        pytest.param(raw(b"\3\0\0\0abc"), True, True, id="raw"),
        pytest.param(raw(b"\3\0\0\0abc", b"\0", inputs=RAW), True, False, id="raw, in one part"),
    ],
)  # fmt: skip
def test_text_is_found_in_a_message(fields: dict[str, Any], streams: bool, in_parts: bool) -> None:
    found = parse_text_request(pb.ModelInferRequest(model_name="m", **fields), streams=streams)
    assert found.call.prompts == ("abc",)
    assert found.call.choices.stream is in_parts
    assert found.answer.raw is bool(fields.get("raw_input_contents"))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"inputs": [TEXT], "id": "i" * (MAX_ID_CHARACTERS + 1)}, "id must be a string of at most"),
        (output("logits"), "outputs must be text_output; got 'logits'"),
        ({"inputs": [TEXT, TEXT]}, "each once; got 'text_input'"),
        ({"inputs": [TEXT, tensor("x", bytes_contents=[b""])]}, "each once; got 'x'"),
        ({"inputs": [TEXT] * 5}, "inputs must be at most 4 tensors; got 5"),
        ({"inputs": [tensor("text_input", "FP32")]}, "text_input must be BYTES; got 'FP32'"),
        ({"inputs": [TEXT, tensor("stream", bytes_contents=[b"1"])]}, "stream must be BOOL"),
        ({"inputs": [tensor("text_input", shape=())]}, "shape must be [1] or [1, 1]; got []"),
        ({"inputs": [tensor("text_input", shape=(2,))]}, "shape must be [1] or [1, 1]; got [2]"),
        ({"inputs": [tensor("text_input", shape=(1, 1, 1))]}, "got [1, 1, 1]"),
        ({"inputs": [tensor("text_input", bytes_contents=[b"a", b"b"])]}, "1 element; got 2"),
        ({"inputs": [tensor("text_input")]}, "contents must have 1 element; got 0"),
        ({"inputs": [TEXT, STREAM]}, "stream must be false with ModelInfer"),
        (raw(b"\3\0\0\0abc", b""), "raw_input_contents must be one for each of the 1 inputs"),
        (raw(b"\4\0\0\0abc"), "one string after its length, 4 bytes; got 7 bytes"),
        (raw(b"\2\0\0\0abc"), "one string after its length, 4 bytes; got 7 bytes"),
        (raw(b"\2", inputs=(tensor("stream", "BOOL"),)), "one byte, 0 or 1; got 1 bytes"),
    ],
)  # fmt: skip
def test_message_that_breaks_a_rule_is_refused_with_it(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_text_request(pb.ModelInferRequest(model_name="m", **fields), streams=False)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("error", "status", "retry_s"),
    [
        (InvalidRequestError("no"), "INVALID_ARGUMENT", 0),
        (QueueFullError("full", retry_after_s=7), "RESOURCE_EXHAUSTED", 7),
    ],
)
def test_error_is_the_last_response_to_its_request(
    error: RequestError, status: str, retry_s: int
) -> None:
    long = "i" * (MAX_ID_CHARACTERS + 1)
    found = pb.ModelStreamInferResponse.FromString(failure("m", long, error))
    parameters = found.infer_response.parameters
    assert found.error_message == error.message
    assert found.infer_response.id == long[:-1]
    assert parameters["status"].string_param == status
    assert parameters["triton_final_response"].bool_param
    assert parameters["retry_after_s"].int64_param == retry_s
