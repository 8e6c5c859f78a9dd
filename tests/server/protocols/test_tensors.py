"""Tensors from JSON and back: the declared shape and kind, or a message that names the rule."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.device.emulated_engine import EmulatedEngine
from headroom_server.engine import Work
from headroom_server.errors import InvalidRequestError
from headroom_server.json_values import flatten, nest
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from headroom_server.typed_arrays import finite


@pytest.mark.parametrize(
    ("datatype", "values"),
    [
        pytest.param("UINT8", [0, 255], id="bytes"),
        pytest.param("INT8", [-128, 127], id="signed bytes"),
        pytest.param("INT64", [-(2**63), 2**63 - 1], id="the widest integers"),
        pytest.param("FP32", [1, -2.5, 3.4e38], id="integers are numbers too"),
        pytest.param("FP64", [1e308, -1e308, 1e308], id="whose sum overflows"),
        pytest.param("BOOL", [True, False], id="booleans"),
    ],
)
def test_valid_values_are_packed(datatype: str, values: list[Any]) -> None:
    numbers = TensorSpec("x", datatype, (len(values),)).numbers(values, "x")
    assert list(numbers) == pytest.approx([float(value) for value in values])


@pytest.mark.parametrize(
    ("datatype", "value", "words"),
    [
        ("UINT8", 256, "from 0 to 255"),
        ("UINT8", -1, "from 0 to 255"),
        ("INT64", 2**63, "one is outside"),
        ("INT64", 1.0, "must be integers .*; element 1 is a fraction"),
        ("INT32", True, "must be integers .*; element 1 is a boolean"),
        ("FP32", 1e39, "finite values"),
        ("FP64", float("inf"), "finite values"),
        ("FP64", float("nan"), "finite values"),
        ("FP64", "1", "must be numbers .*; element 1 is a string"),
        ("FP64", [1], "element 1 is a list"),
        ("FP64", {}, "element 1 is an object"),
        ("BOOL", 1, "must be true or false .*; element 1 is an integer"),
    ],
)
def test_invalid_value_is_reported(datatype: str, value: Any, words: str) -> None:
    first = False if datatype == "BOOL" else 0
    with pytest.raises(InvalidRequestError, match=f"field .*{words}"):
        TensorSpec("x", datatype, (2,)).numbers([first, value], "field")


@given(st.lists(st.integers(1, 4), max_size=4))
def test_nest_and_flatten_are_inverse(shape: list[int]) -> None:
    count = 1
    for size in shape:
        count *= size
    flat: list[object] = list(range(count))
    assert flatten(nest(flat, shape), shape, "x") == flat


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([[1, 2], [3]], "axis 1 must have 2 elements .*; got 1"),
        ([[1, 2]], "axis 0 must have 2 elements .*; got 1"),
        ([[1, 2], 3], "axis 1 must be a list of 2 .*; got an integer"),
        ([[1, 2], {}], "axis 1 must be a list of 2 .*; got an object"),
        (None, "axis 0 must be a list of 2 .*; got null"),
    ],
)
def test_wrong_shape_is_reported(data: object, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        flatten(data, (2, 2), "x")


@given(st.lists(st.floats()))
def test_finite_requires_every_number_to_be_finite(numbers: list[float]) -> None:
    assert finite(numbers) == all(abs(n) < float("inf") for n in numbers)


@pytest.mark.parametrize(
    ("name", "datatype", "shape", "words"),
    [
        ("x", "COMPLEX64", (1,), "must be one of BOOL"),
        ("x", "FP32", (0,), "at least 1"),
        ("x", "BYTES", (-1,), "strings are not padded"),
    ],
)
def test_unknown_datatype_is_refused(
    name: str, datatype: str, shape: tuple[int, ...], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        TensorSpec(name, datatype, shape)


def test_repeated_tensor_name_is_refused() -> None:
    spec = TensorSpec("x", "FP32")
    with pytest.raises(ValueError, match="distinct names"):
        Signature(inputs=(spec, spec), outputs=(spec,))


@pytest.mark.parametrize(
    ("row", "total"),
    [
        ([1e16, 1.0, -1e16, 0.5], 1.5),
        ([1.7e308, 1.7e308, -1.7e308, -1.7e308], 0.0),
        ([1.7e308, 1.7e308, -1.7e308, 5.0], 1.7e308),
        ([1.7e308, 1.7e308, 0.0, 0.0], 1.7976931348623157e308),
        ([-1.7e308, -1.7e308, 0.0, 0.0], -1.7976931348623157e308),
    ],
    ids=["exact", "cancelled", "back in range", "beyond all", "below all"],
)
def test_emulated_sum_is_always_finite(row: list[float], total: float) -> None:
    engine = EmulatedEngine(fixed_cost_s=0.0, per_item_cost_s=0.0, load_s=0.0, input_size=4)
    engine.load()
    work = Work(1, {"x": array("d", row)})
    assert engine.execute(engine.stage([work], 0)) == [{"sum": array("d", [total])}]
