"""The fields of a message are counted on the wire, before any object is built."""

from __future__ import annotations

import pytest

from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.wire_bounds import (
    MAX_FIELDS,
    UNCHECKED_BYTES,
    WireCount,
)

EMPTY_INPUT = b"\x2a\x00"
PADDING = pb.ModelInferRequest(raw_input_contents=[bytes(UNCHECKED_BYTES)]).SerializeToString()


@pytest.mark.parametrize(
    ("message", "many"),
    [
        pytest.param(EMPTY_INPUT * 30_000, False, id="small enough to be parsed"),
        pytest.param(EMPTY_INPUT * 40_000, True, id="empty inputs"),
        pytest.param(PADDING + EMPTY_INPUT * (MAX_FIELDS - 1), False, id="as many as allowed"),
        pytest.param(PADDING + EMPTY_INPUT * MAX_FIELDS, True, id="one more"),
        pytest.param(PADDING + b"\x08\x01" * MAX_FIELDS, True, id="unknown numbers"),
        pytest.param(PADDING + b"\x0d1234" * MAX_FIELDS, True, id="unknown fixed numbers"),
        pytest.param(PADDING + b"\x091234567" * 9, False, id="ends within a number"),
        pytest.param(b"\xff" * 100_000, False, id="no message: the parser says so"),
        pytest.param(PADDING + b"\x0b\x0c" + EMPTY_INPUT * 9000, True, id="behind a group"),
        pytest.param(PADDING[:-9], False, id="ends within a field"),
    ],
)
def test_fields_are_counted_up_to_the_bound(message: bytes, many: bool) -> None:
    assert WireCount(message).too_many is many


def test_usual_large_message_has_few_fields() -> None:
    request = pb.ModelInferRequest(model_name="m", id="1", raw_input_contents=[bytes(5 << 20)])
    request.inputs.add(name="x", datatype="FP32", shape=[8, 3, 224, 224])
    assert WireCount(request.SerializeToString()).fields == 7


def test_nested_fields_and_packed_numbers_are_counted() -> None:
    request = pb.ModelInferRequest(raw_input_contents=[bytes(UNCHECKED_BYTES)])
    one = request.inputs.add(name="x", datatype="INT64", shape=[1, 300, 1 << 40])
    one.contents.int64_contents.extend([0, 1, 1 << 62])
    one.contents.bytes_contents.extend([b"", b"a"])
    one.parameters["k"].int64_param = 1
    request.outputs.add(name="y").parameters["binary_data"].bool_param = True
    found = WireCount(request.SerializeToString())
    # raw contents, input: name, datatype, shape, parameter: key, value; contents: numbers, 2 bytes
    # output: name, parameter: key, value
    assert (found.fields, found.numbers) == (17, 6)
    assert not found.too_many


@pytest.mark.parametrize(
    "inside",
    [
        pytest.param(b"\x22\x00" * 40_000, id="parameters of an input"),
        pytest.param(b"\x2a\x80\xf1\x04" + b"\x42\x00" * 40_000, id="strings of an input"),
    ],
)
def test_message_with_many_nested_fields_has_too_many(inside: bytes) -> None:
    size = len(inside)
    length = bytes((size & 127 | 128, size >> 7 & 127 | 128, size >> 14))
    assert WireCount(b"\x2a" + length + inside).too_many
