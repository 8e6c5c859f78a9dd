"""The one-pass parser of JSON tensors agrees with the general parser, or leaves bodies to it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.datatypes import DATATYPES
from headroom_server.engine import Work
from headroom_server.errors import InvalidRequestError
from headroom_server.protocols.contract import Contract
from headroom_server.protocols.flat_tensors import FlatTensors
from headroom_server.protocols.open_inference import parse
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec

PAIR = Signature(
    (TensorSpec("x", "FP64", (2,)), TensorSpec("n", "INT8")), (TensorSpec("y", "FP64"),)
)


class NeverUsual(FlatTensors):
    """Parse with the general parser only."""

    def read(self, tensors: Any) -> Work | None:
        return None


def field_by_field(signature: Signature, body: bytes) -> Work:
    contract = Contract(signature, 4)
    contract.flat = NeverUsual(signature, 4)
    return parse(contract, body).work


def tensor(name: str, shape: Any, datatype: str, data: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "shape": shape, "datatype": datatype, "data": data, **more}


X, N = tensor("x", [1, 2], "FP64", [1, 2.5]), tensor("n", [1], "INT8", [3])


@pytest.mark.parametrize("datatype", ["FP64", "FP32", "FP16", "BF16", "INT8", "BOOL", "BYTES"])
def test_common_tensors_are_parsed_in_one_pass(datatype: str) -> None:
    value: Any = {"BOOL": True, "BYTES": "é"}.get(datatype, 1)
    signature = Signature((TensorSpec("x", datatype, (2,)),), (TensorSpec("y", "FP64"),))
    tensors = [tensor("x", [2, 2], datatype, [value] * 4)]
    work = FlatTensors(signature, 4).read(tensors)
    assert work == Work(2, {"x": DATATYPES[datatype].packed([value] * 4)})
    assert work == field_by_field(signature, orjson.dumps({"inputs": tensors}))


@pytest.mark.parametrize(
    "tensors",
    [
        pytest.param(None, id="none"),
        pytest.param({"name": "x"}, id="no list"),
        pytest.param([X], id="one is missing"),
        pytest.param([X, X], id="one twice"),
        pytest.param([X, 7], id="no object"),
        pytest.param([X, [1, 2, 3, 4]], id="a list for an object"),
        pytest.param([X, N | {"name": "m"}], id="another name"),
        pytest.param([X, N | {"name": ["n"]}], id="no name"),
        pytest.param([X, N | {"shape": [2]}], id="other items"),
        pytest.param([X, N | {"shape": [1.0]}], id="a shape of fractions"),
        pytest.param([X, N | {"shape": [True]}], id="a shape of booleans"),
        pytest.param([X, N | {"shape": 1}], id="no shape"),
        pytest.param([X, N | {"shape": []}], id="no dimension"),
        pytest.param([X | {"shape": [0, 2], "data": []}, N], id="no items"),
        pytest.param([X | {"shape": [5, 2], "data": [1] * 10}, N], id="too wide"),
        pytest.param([X, N | {"datatype": "INT16"}], id="another type"),
        pytest.param([X, N | {"data": [3, 4]}], id="too many numbers"),
        pytest.param([X, N | {"data": [3.0]}], id="a fraction"),
        pytest.param([X, N | {"data": [True]}], id="a boolean"),
        pytest.param([X, N | {"data": [128]}], id="out of range"),
        pytest.param([X, N | {"data": "3"}], id="a string for a list"),
        pytest.param([X | {"data": [[1, 2]]}, N], id="nested"),
        pytest.param([X | {"data": [1, float("nan")]}, N], id="NaN"),
        pytest.param([X, N | {"parameters": {}}], id="parameters"),
    ],
)
def test_other_tensors_are_left_to_the_general_parser(tensors: Any) -> None:
    assert FlatTensors(PAIR, 4).read(tensors) is None


SCALARS = st.none() | st.booleans() | st.integers(-300, 300) | st.floats(width=32) | st.text()
FIELDS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["x", "n", "m"]) | SCALARS,
        "shape": st.lists(st.integers(0, 5) | SCALARS, max_size=3) | SCALARS,
        "datatype": st.sampled_from(["FP64", "INT8"]) | SCALARS,
        "data": st.lists(SCALARS, max_size=8) | SCALARS,
    }
)


@given(st.lists(FIELDS, max_size=3) | st.permutations([X, N]) | SCALARS)
def test_both_parsers_give_the_same_numbers(tensors: Any) -> None:
    usual = FlatTensors(PAIR, 4).read(tensors)
    try:
        reply = field_by_field(PAIR, orjson.dumps({"inputs": tensors}))
    except InvalidRequestError:
        assert usual is None
    else:
        assert usual is None or usual == reply
