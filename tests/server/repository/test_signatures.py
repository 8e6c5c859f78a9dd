"""Declarations of a model: fixed and dynamic shapes, and the shapes of executed batches."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from headroom_server.engine import Work, check_outputs
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec

TOKENS = TensorSpec("tokens", "INT64", (-1,))
FRAMES = TensorSpec("frames", "FP32", (3, -1, 2))
LABEL = TensorSpec("label", "FP32", (2,))


@pytest.mark.parametrize(
    ("spec", "length", "shape", "elements"),
    [
        (LABEL, 0, (2,), 2),
        (LABEL, 7, (2,), 2),
        (TOKENS, 5, (5,), 5),
        (FRAMES, 4, (3, 4, 2), 24),
        (TensorSpec("scalar", "FP32"), 9, (), 1),
    ],
    ids=["fixed", "fixed, of a request with a length", "dynamic", "in the middle", "scalar"],
)
def test_item_has_the_size_of_its_length(
    spec: TensorSpec, length: int, shape: tuple[int, ...], elements: int
) -> None:
    assert spec.sized(length) == shape
    assert spec.elements_at(length) == elements
    assert len(spec.zeros(3, length)) == 3 * elements


@pytest.mark.parametrize("shape", [(0,), (-2,), (-1, 3, -1)])
def test_impossible_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"tensor x: .*got \("):
        TensorSpec("x", "FP32", shape)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"lengths": ()}, "got lengths"),
        ({"inputs": (LABEL,), "lengths": (8,)}, "got lengths"),
        ({"lengths": (8, 8)}, "lengths must .* ascending"),
        ({"lengths": (0, 8)}, "lengths must be at least 1"),
        ({"batches": (4, 2)}, "batches must .* ascending"),
        ({"inputs": (LABEL,), "outputs": (FRAMES,), "lengths": ()}, "unless an input is"),
        ({"mask": LABEL}, "distinct names"),
        ({"mask": TensorSpec("mask", "BOOL", (2,))}, "a mask must have the shape"),
        ({"mask": TOKENS}, "distinct names"),
    ],
)
def test_contradicting_declarations_are_refused(declared: dict[str, Any], words: str) -> None:
    fitting: dict[str, Any] = {
        "inputs": (TOKENS, LABEL),
        "outputs": (TensorSpec("y", "FP32"),),
        "lengths": (8, 16),
    }
    assert Signature(**fitting).dynamic
    with pytest.raises(ValueError, match=words):
        Signature(**fitting | declared)


def test_request_is_padded_to_the_next_warmed_shape() -> None:
    y = (TensorSpec("y", "FP32"),)
    signature = Signature((TOKENS,), y, lengths=(16, 64), batches=(1, 4, 8))
    assert [signature.padded_length(n) for n in (1, 16, 17, 64)] == [16, 16, 64, 64]
    assert [signature.padded_batch(n) for n in (1, 2, 4, 5, 8)] == [1, 4, 4, 8, 8]
    for none in (0, 65):
        with pytest.raises(ValueError, match=f"a length must be from 1 to 64; got {none}"):
            signature.padded_length(none)
    with pytest.raises(ValueError, match="a batch must be from 1 to 8; got 9"):
        signature.padded_batch(9)
    fixed = Signature((LABEL,), y)
    assert (fixed.padded_length(0), fixed.padded_batch(3)) == (0, 3)


def test_dynamic_output_has_the_length_of_its_request() -> None:
    signature = Signature((TOKENS,), (FRAMES,), lengths=(8,))
    works = [Work(2, {}, length=3), Work(1, {}, length=8)]
    # 2 items of 3 x 3 x 2 numbers, and one of 3 x 8 x 2
    right = [{"frames": array("f", [0.0] * 36)}, {"frames": array("f", [0.0] * 48)}]
    check_outputs(signature, works, right)
    with pytest.raises(ValueError, match="output frames must have 36 elements; got 48"):
        check_outputs(signature, works, [right[1], right[1]])
