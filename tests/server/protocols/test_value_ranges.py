"""Values outside an input's declared range are refused, whichever way they come."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pytest

from headroom_server.engine import LoadError
from headroom_server.errors import InvalidRequestError
from headroom_server.open_inference_grpc import messages
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.protocols.contract import Contract
from headroom_server.protocols.open_inference import parse
from headroom_server.protocols.typed_json import TypedJsonCodec
from headroom_server.repository.description_file import parse as described
from headroom_server.repository.samples import works
from headroom_server.repository.signatures import agreed
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from headroom_server.value_ranges import ValueRange

OUTPUT = TensorSpec("y", "FP32")
CONTRACT = Contract(
    Signature((TensorSpec("tokens", "INT64", (3,), ValueRange(0, 99)),), (OUTPUT,)), 4
)


def tensor(data: object, **more: object) -> dict[str, object]:
    return {"name": "tokens", "datatype": "INT64", "shape": [1, 3], "data": data, **more}


def flat(values: Sequence[int]) -> None:
    parse(CONTRACT, orjson.dumps({"inputs": [tensor([*values])]}))


def nested(values: Sequence[int]) -> None:
    parse(CONTRACT, orjson.dumps({"inputs": [tensor([[*values]])]}))


def binary(values: Sequence[int]) -> None:
    raw = array("q", values).tobytes()
    one = tensor(None, parameters={"binary_data_size": len(raw)})
    del one["data"]
    head = orjson.dumps({"inputs": [one]})
    parse(CONTRACT, head + raw, len(head))


def instances(values: Sequence[int]) -> None:
    TypedJsonCodec(CONTRACT).parse(orjson.dumps({"instances": [[*values]]}))


def message(values: Sequence[int]) -> None:
    request = pb.ModelInferRequest(model_name="m")
    one = request.inputs.add(name="tokens", datatype="INT64", shape=[1, 3])
    one.contents.int64_contents.extend(values)
    messages.parse(CONTRACT, request)


@pytest.mark.parametrize("send", [flat, nested, binary, instances, message])
@pytest.mark.parametrize(
    ("values", "found"), [((0, 5, 99), None), ((0, 100, 3), 100), ((-1, 2, 3), -1)]
)
def test_values_outside_the_range_are_refused(
    send: Callable[[Sequence[int]], None], values: Sequence[int], found: int | None
) -> None:
    if found is None:
        send(values)
        return
    with pytest.raises(InvalidRequestError) as refused:
        send(values)
    assert refused.value.message == f"inputs.tokens must have values from 0 to 99; got {found}"


@pytest.mark.parametrize(
    ("minimum", "maximum", "words"),
    [(None, 5, "of at most 5"), (-1.5, None, "of at least -1.5"), (-1, 1, "from -1 to 1")],
)
def test_a_range_is_named(minimum: float | None, maximum: float | None, words: str) -> None:
    assert ValueRange(minimum, maximum).words == words


@pytest.mark.parametrize(("minimum", "maximum"), [(1, None), (None, -1), (2, 5)])
def test_a_range_includes_what_pads_requests(minimum: Any, maximum: Any) -> None:
    with pytest.raises(ValueError, match="must include 0"):
        ValueRange(minimum, maximum)


@pytest.mark.parametrize("datatype", ["FP16", "BF16", "BOOL", "BYTES"])
def test_ranges_are_of_numbers_that_arrays_hold(datatype: str) -> None:
    with pytest.raises(ValueError, match=f"got {datatype}"):
        TensorSpec("x", datatype, (2,), ValueRange(0, 1))


def test_outputs_have_no_range() -> None:
    with pytest.raises(ValueError, match="must be of inputs"):
        Signature((OUTPUT,), (TensorSpec("y", "FP32", (), ValueRange(0, 1)),))


DESCRIPTION = b"""
architecture = "my:Model"
[[inputs]]
name = "tokens"
datatype = "INT64"
shape = [3]
minimum = 0
maximum = 9
[[outputs]]
name = "y"
datatype = "FP32"
[[warm_up]]
inputs = { tokens = [1, 2, 30] }
"""


def test_a_description_adds_the_range_that_a_class_does_not_know() -> None:
    own = Signature((TensorSpec("tokens", "INT64", (3,)),), (OUTPUT,))
    description = described(DESCRIPTION, "model.toml")
    signature = agreed(description, own)
    assert signature.inputs[0].value_range == ValueRange(0, 9)
    with pytest.raises(LoadError, match=r"warm_up\[0\].inputs.tokens must have values from 0 to 9"):
        works(description.warm_up, signature)
