"""The fields of a message are counted on the wire, before any object is built."""

from __future__ import annotations

import pytest

from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.wire_bounds import (
    MAX_FIELDS,
    UNCHECKED_BYTES,
    has_many_fields,
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
    assert has_many_fields(message) is many


def test_usual_large_message_has_few_fields() -> None:
    request = pb.ModelInferRequest(model_name="m", id="1", raw_input_contents=[bytes(5 << 20)])
    request.inputs.add(name="x", datatype="FP32", shape=[8, 3, 224, 224])
    assert not has_many_fields(request.SerializeToString())
