"""A body is refused by its length and by the number of its values, before it is parsed."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from headroom_server.errors import TooLargeError
from headroom_server.protocols.body_bounds import UNCHECKED_BYTES, BodyBounds
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec

ITEMS = 8
IMAGE = Signature(
    inputs=(TensorSpec("x", "FP32", (3, 32, 32)),), outputs=(TensorSpec("y", "FP32"),)
)
WORDS = Signature(inputs=(TensorSpec("t", "BYTES"),), outputs=(TensorSpec("y", "FP32"),))
ROWS = Signature(
    inputs=(TensorSpec("x", "FP32", (-1, 4)),),
    outputs=(TensorSpec("y", "FP32"),),
    lengths=(16, 512),
)


def image(items: int = ITEMS) -> bytes:
    rows = [[[-1.2345678901234567e-300] * 32] * 32] * 3
    return json.dumps({"instances": [{"x": rows}] * items}, indent=4).encode()


def text(one: str) -> bytes:
    tensor = {"name": "t", "shape": [ITEMS], "datatype": "BYTES", "data": [one] * ITEMS}
    return json.dumps({"inputs": [tensor]}).encode()


@pytest.mark.parametrize(
    ("signature", "body"),
    [
        pytest.param(IMAGE, image(), id="largest batch, longest numbers, indented"),
        pytest.param(WORDS, text('a, "b": [{' * 20_000), id="strings with every separator"),
        pytest.param(WORDS, text("\\" * 100_000), id="strings of escapes"),
        pytest.param(WORDS, text("\n" * 100_000), id="strings of line ends"),
        pytest.param(
            ROWS, json.dumps({"instances": [[[0.125] * 4] * 512] * ITEMS}).encode(), id="dynamic"
        ),
    ],
)
def test_largest_request_of_a_model_is_within_its_bounds(signature: Signature, body: bytes) -> None:
    assert len(body) > UNCHECKED_BYTES
    bounds = BodyBounds(signature, ITEMS)
    bounds.check(body)
    assert len(body) <= bounds.limit(1 << 30)


def test_largest_request_of_many_small_items_may_name_each_input_of_each_item() -> None:
    """Typed JSON has an object per item and a field per input: 4096 x (1 + 3) parts, no lists."""
    scalars = Signature(
        inputs=tuple(TensorSpec(name, "FP32") for name in "abc"), outputs=(TensorSpec("y", "FP32"),)
    )
    body = json.dumps({"instances": [dict.fromkeys("abc", 0.125)] * 4096}).encode()
    assert len(body) > UNCHECKED_BYTES
    BodyBounds(scalars, 4096).check(body)


@pytest.mark.parametrize("signature", [IMAGE, WORDS, ROWS], ids=["image", "text", "rows"])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"instances":[' + b"[]," * 500_000 + b"[]]}", id="lists"),
        pytest.param(b'{"inputs":[' + b"{}," * 500_000 + b"{}]}", id="objects"),
        pytest.param(b'{"inputs":[' + b"1," * 500_000 + b"1]}", id="numbers"),
        pytest.param(b'{"inputs":[' + b'"",' * 500_000 + b'""]}', id="empty strings"),
        pytest.param(b"{" + b'"a":1,' * 500_000 + b'"a":1}', id="fields"),
        pytest.param(b"[" * 500_000, id="depth"),
        pytest.param(b'"' + b"[," * 500_000, id="an open string"),
        pytest.param(b'"\\\n' * 100 + b"[," * 500_000, id="open strings"),
    ],
)
def test_body_of_many_values_is_refused(signature: Signature, body: bytes) -> None:
    with pytest.raises(TooLargeError, match="must have at most"):
        BodyBounds(signature, ITEMS).check(body)


@pytest.mark.parametrize("signature", [IMAGE, WORDS, ROWS], ids=["image", "text", "rows"])
def test_counting_what_is_outside_of_strings_costs_no_more_than_the_body(
    signature: Signature,
) -> None:
    body = b"{" + b'"":1,' * 500_000 + b'"":1}'
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            BodyBounds(signature, ITEMS).check(body)
        assert tracemalloc.get_traced_memory()[1] < len(body)
    finally:
        tracemalloc.stop()


def test_bytes_after_the_json_are_no_values() -> None:
    bounds = BodyBounds(IMAGE, ITEMS)
    bounds.check(b"{}" + b"[,:" * 100_000, 2)
    with pytest.raises(TooLargeError):
        bounds.check(b"{}" + b"[,:" * 100_000)


def test_length_follows_from_the_model_unless_its_items_are_strings() -> None:
    small = Signature(inputs=(TensorSpec("x", "FP32", (4,)),), outputs=(TensorSpec("y", "FP32"),))
    assert BodyBounds(small, ITEMS).limit(8 << 20) == UNCHECKED_BYTES + 64 * 4 * ITEMS
    assert BodyBounds(small, ITEMS).limit(1024) == 1024
    assert BodyBounds(WORDS, ITEMS).limit(8 << 20) == 8 << 20
