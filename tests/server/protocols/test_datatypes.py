"""Every element type in every encoding: worked bytes, limits, round trips."""

from __future__ import annotations

from array import array
from typing import Any

import orjson
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom_server.caching.values import decoded, encoded
from headroom_server.datatypes import DATATYPES, elements, joined
from headroom_server.engine import Work, check_outputs
from headroom_server.errors import InvalidRequestError
from headroom_server.open_inference_grpc import messages
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.protocols import descriptions
from headroom_server.protocols.binary_tensors import from_bytes, to_bytes
from headroom_server.protocols.contract import Contract
from headroom_server.protocols.open_inference import parse, render
from headroom_server.protocols.schemas import infer_examples
from headroom_server.protocols.typed_json import TypedJsonCodec
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from headroom_server.typed_arrays import Numbers
from support.datatype_signature import signature

WORKED: list[tuple[str, Any, str]] = [
    ("FP16", 1.0, "003c"),
    ("FP16", -2, "00c0"),
    ("FP16", 65504, "ff7b"),
    ("FP16", 2**-24, "0100"),  # the smallest
    ("FP16", 2049, "0068"),  # between 2048 and 2050: to the even one
    ("FP16", 2051, "0268"),
    ("BF16", 1.0, "803f"),
    ("BF16", -2.5, "20c0"),
    ("BF16", 3.3895313892515355e38, "7f7f"),
    ("BF16", 1 + 2**-8, "803f"),  # between 1 and 1 + 2**-7: to the even one
    ("BF16", 1 + 3 * 2**-8, "823f"),
    ("BF16", 1 + 2**-8 + 2**-20, "813f"),
    ("UINT16", 65535, "ffff"),
    ("UINT32", 4294967295, "ffffffff"),
    ("UINT64", 2**64 - 1, "ffffffffffffffff"),
    ("UINT64", 258, "0201000000000000"),
    ("BYTES", "", "00000000"),
    ("BYTES", "abc", "03000000616263"),
    ("BYTES", "é", "02000000c3a9"),
    ("BOOL", True, "01"),
    ("INT8", -1, "ff"),
    ("INT16", -2, "feff"),
    ("INT64", -1, "ffffffffffffffff"),
    ("FP32", 1.0, "0000803f"),
]


@pytest.mark.parametrize(("datatype", "value", "wire"), WORKED)
def test_packed_bytes_match_worked_examples(datatype: str, value: Any, wire: str) -> None:
    spec, raw = TensorSpec("x", datatype), bytes.fromhex(wire)
    numbers = spec.numbers([value], "x")
    assert to_bytes(numbers) == raw
    assert from_bytes(spec, raw, 1, "x") == numbers
    (back,) = DATATYPES[datatype].values(numbers)
    assert spec.numbers([back], "x") == numbers
    assert spec.count(numbers) == 1


@pytest.mark.parametrize(
    ("datatype", "value", "words"),
    [
        ("FP16", 65505, "from -65504 to 65504"),
        ("FP16", -1e5, "from -65504 to 65504"),
        ("FP16", 10**400, "from -65504 to 65504"),
        ("FP16", float("nan"), "finite values"),
        ("FP16", "1", "must be numbers .*; element 0 is a string"),
        ("BF16", 3.4e38, "one is outside"),
        ("BF16", float("-inf"), "one is outside"),
        ("BF16", True, "must be numbers .*; element 0 is a boolean"),
        ("UINT16", 65536, "from 0 to 65535"),
        ("UINT32", -1, "from 0 to"),
        ("UINT64", 2**64, "one is outside"),
        ("UINT64", 1.0, "must be integers"),
        ("BYTES", 1, "must be strings .*; element 0 is an integer"),
        ("BYTES", None, "must be strings .*; element 0 is null"),
    ],
)
def test_out_of_range_values_are_refused(datatype: str, value: Any, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        TensorSpec("x", datatype).numbers([value], "x")


@pytest.mark.parametrize(
    ("raw", "count", "words"),
    [
        (b"", 1, "must have 1 elements of BYTES; got 0"),
        (b"\1\0\0", 1, "a length must have 4 bytes; 3 are left"),
        (b"\1\0\0\0", 1, "an element must have 1 bytes; 0 are left"),
        (b"\xff\xff\xff\xffab", 1, "an element must have 4294967295 bytes; 2 are left"),
        (b"\0\0\0\0" * 2, 1, "must have 1 elements of BYTES; got more"),
        (b"\0\0\0\0" * 2, 3, "must have 3 elements of BYTES; got 2"),
    ],
)
def test_malformed_bytes_elements_are_refused(raw: bytes, count: int, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"here.*{words}"):
        from_bytes(TensorSpec("x", "BYTES"), raw, count, "here")


@pytest.mark.parametrize("count", [3, 300], ids=["few", "many"])
@pytest.mark.parametrize(
    ("datatype", "good", "bad"),
    [
        ("FP16", "ff7b", ["007c", "00fc", "017e"]),
        ("BF16", "7f7f", ["807f", "80ff", "c07f"]),
    ],
)
def test_sixteen_bit_nan_and_infinity_are_found(
    datatype: str, good: str, bad: list[str], count: int
) -> None:
    spec, largest = TensorSpec("x", datatype), bytes.fromhex(good)
    assert len(from_bytes(spec, largest * count, count, "x")) == count
    for one in bad:
        raw = largest * (count - 1) + bytes.fromhex(one)
        with pytest.raises(InvalidRequestError, match="finite"):
            from_bytes(spec, raw, count, "x")
        answer: Numbers = array("H", raw)
        assert not Signature((spec,), (spec,)).all_finite({"x": answer})


@given(st.lists(st.floats(-65504, 65504)))
def test_sixteen_bit_numbers_are_rounded_like_torch(numbers: list[float]) -> None:
    for datatype, dtype in (("FP16", torch.float16), ("BF16", torch.bfloat16)):
        packed = DATATYPES[datatype].packed(numbers)
        wanted = torch.tensor(numbers, dtype=torch.float64).to(dtype)
        assert packed.tolist() == wanted.view(torch.uint16).tolist()
        assert DATATYPES[datatype].values(packed) == wanted.tolist()


@given(st.lists(st.binary(max_size=20)))
def test_bytes_strings_round_trip(strings: list[bytes]) -> None:
    assert elements(joined(strings)) == strings
    spec = TensorSpec("x", "BYTES", (max(1, len(strings)),))
    packed = from_bytes(spec, to_bytes(joined(strings)), len(strings), "x")
    assert packed == joined(strings)
    assert spec.count(packed) == len(strings)


@given(st.binary(max_size=40), st.integers(0, 4))
def test_arbitrary_bytes_are_elements_or_refused(raw: bytes, count: int) -> None:
    try:
        numbers = from_bytes(TensorSpec("x", "BYTES"), raw, count, "x")
    except InvalidRequestError as error:
        assert len(error.message) < 200  # noqa: PT017 - either way is right
    else:
        assert len(elements(numbers)) == count


PAIRS: dict[str, list[Any]] = {
    "FP16": [1.5, -2.0],
    "BF16": [1.5, -2.0],
    "UINT16": [0, 65535],
    "UINT32": [0, 2**32 - 1],
    "UINT64": [0, 2**64 - 1],
    "BYTES": ["", "naïve"],
}


@pytest.mark.parametrize(("datatype", "pair"), PAIRS.items())
def test_every_encoding_gives_the_same_work(datatype: str, pair: list[Any]) -> None:
    contract = Contract(signature(datatype), max_items=4)
    spec = contract.inputs["x"]
    numbers = spec.numbers(pair, "x")
    tensor = {"name": "x", "shape": [1, 2], "datatype": datatype}
    head = {
        "inputs": [tensor | {"parameters": {"binary_data_size": len(to_bytes(numbers))}}],
        "parameters": {"binary_data_output": True},
    }
    text = orjson.dumps(head)
    form = TypedJsonCodec(contract)
    asked = parse(contract, orjson.dumps({"inputs": [tensor | {"data": pair}]}))
    binary = parse(contract, text + to_bytes(numbers), len(text))
    typed = form.parse(orjson.dumps({"instances": [pair]}))
    grpc = messages.parse(
        contract, pb.ModelInferRequest(inputs=[tensor], raw_input_contents=[to_bytes(numbers)])
    )
    for work in (asked.work, binary.work, typed, grpc.work):
        assert work == Work(1, {"x": numbers})
    outputs = {"y": numbers}
    check_outputs(contract.signature, [asked.work], [outputs])
    (reply,) = orjson.loads(render("m", "1", asked, outputs).content)["outputs"]
    assert (reply["datatype"], reply["data"]) == (datatype, pair)
    body = render("m", "1", binary, outputs)
    assert body.content[body.head_bytes :] == to_bytes(numbers)
    assert orjson.loads(form.render(typed, outputs)) == {"predictions": [pair]}
    assert [*messages.render("m", "1", grpc, outputs).raw_output_contents] == [to_bytes(numbers)]
    key = bytes(32)
    kept = encoded(key, outputs, contract.signature.outputs)
    assert decoded(key, kept, typed, contract.signature.outputs) == outputs
    (example,) = infer_examples(contract.signature)
    parse(contract, orjson.dumps(example))
    config = descriptions.model_config("m", "torch", contract.signature, 4)
    assert pb.ModelConfig(**config).input[0].data_type != pb.TYPE_INVALID


@pytest.mark.parametrize(
    ("datatype", "field", "values"),
    [
        ("UINT16", "uint_contents", [1, 2]),
        ("UINT32", "uint_contents", [1, 2**32 - 1]),
        ("UINT64", "uint64_contents", [1, 2**64 - 1]),
        ("BYTES", "bytes_contents", [b"\xff", b""]),
    ],
)
def test_grpc_typed_contents_are_parsed(datatype: str, field: str, values: list[Any]) -> None:
    contract = Contract(signature(datatype), max_items=4)
    tensor = {"name": "x", "shape": [1, 2], "datatype": datatype, "contents": {field: values}}
    asked = messages.parse(contract, pb.ModelInferRequest(inputs=[tensor]))
    numbers = contract.inputs["x"].numbers(values, "x")
    assert asked.work.inputs == {"x": numbers}
    answer = messages.render("m", "1", asked, {"y": numbers})
    assert [*getattr(answer.outputs[0].contents, field)] == values
    assert not answer.raw_output_contents


def test_types_without_grpc_contents_are_raw_with_all_outputs() -> None:
    outputs = (TensorSpec("a", "FP16"), TensorSpec("b", "FP64"))
    contract = Contract(Signature((TensorSpec("x", "INT32"),), outputs), max_items=4)
    tensor = {"name": "x", "shape": [1], "datatype": "INT32", "contents": {"int_contents": [1]}}
    for named, count in (([], 2), (["b", "a"], 2), (["b"], 0)):
        asked = messages.parse(
            contract,
            pb.ModelInferRequest(inputs=[tensor], outputs=[{"name": name} for name in named]),
        )
        answer = messages.render("m", "1", asked, {"a": array("H", [0x3C00]), "b": array("d", [2])})
        assert len(answer.raw_output_contents) == count
    half = Contract(signature("FP16"), max_items=4)
    with pytest.raises(InvalidRequestError, match="FP16 must be sent in raw_input_contents"):
        messages.parse(
            half,
            pb.ModelInferRequest(inputs=[{"name": "x", "shape": [1, 2], "datatype": "FP16"}]),
        )


def test_invalid_utf_8_is_replaced_in_json() -> None:
    assert DATATYPES["BYTES"].values(joined([b"a\xffb"])) == ["a\ufffdb"]


@settings(max_examples=50)
@given(st.sampled_from(sorted(PAIRS)), st.binary(max_size=12))
def test_truncated_cached_answer_is_ignored(datatype: str, raw: bytes) -> None:
    one = signature(datatype)
    key = bytes(32)
    value = encoded(key, {"y": array("B", raw)}, one.outputs)
    work = Work(1, {})
    outputs = decoded(key, value, work, one.outputs)
    if outputs is not None:
        assert to_bytes(outputs["y"]) == raw


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"y": joined([b"a"])}, "output y must have 2 elements; got 1"),
        ({"y": array("B", b"\1\0\0\0")}, "an element must have 1 bytes"),
        ({"y": array("d", [1, 2])}, "an array of 'B'"),
    ],
)
def test_malformed_strings_of_an_engine_are_found(answer: dict[str, Numbers], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_outputs(signature("BYTES"), [Work(1, {"x": joined([b"", b""])})], [answer])


def test_integers_that_round_to_the_largest_double_fit_as_the_document_says() -> None:
    form = TypedJsonCodec(Contract(signature("FP64"), max_items=4))
    largest = int(DATATYPES["FP64"].highest)
    work = form.parse(b'{"instances": [[%d, 1]]}' % (largest + 1))
    assert work.inputs["x"].tolist() == [float(largest), 1.0]
    with pytest.raises(InvalidRequestError):
        form.parse(b'{"instances": [[%d, 1]]}' % (2 * largest))
