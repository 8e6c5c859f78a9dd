"""Open Inference Protocol v2's binary tensors: exact byte counts, or a message that names them."""

from __future__ import annotations

import struct
from array import array
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom_server.datatypes import DATATYPES
from headroom_server.errors import InvalidRequestError, RequestError
from headroom_server.protocols.binary_tensors import from_bytes, to_bytes
from headroom_server.protocols.contract import Contract, Wanted
from headroom_server.protocols.open_inference import HEAD_LENGTH, parse, render
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from support.server_world import Start, balanced_metrics

PAIR = TensorSpec("x", "FP64", (2,))
FLAG = TensorSpec("on", "BOOL")
TOKENS = TensorSpec("tokens", "INT32", (-1,))
SUM = TensorSpec("sum", "FP64")
CONTRACT = Contract(Signature((PAIR, FLAG), (SUM,)), max_items=4)
x_of_two = struct.pack("<4d", 1, 2, 3, 4)


def head(**over: Any) -> dict[str, Any]:
    """Two items of PAIR as 32 bytes and of FLAG as 2."""
    x = {"name": "x", "shape": [2, 2], "datatype": "FP64", "parameters": {"binary_data_size": 32}}
    on = {"name": "on", "shape": [2], "datatype": "BOOL", "parameters": {"binary_data_size": 2}}
    return {"inputs": [x | over.pop("x", {}), on | over.pop("on", {})], **over}


def split(value: dict[str, Any], tail: bytes) -> tuple[bytes, int]:
    text = orjson.dumps(value)
    return text + tail, len(text)


def test_binary_data_is_assigned_to_inputs_in_order() -> None:
    body, head_bytes = split(head(), x_of_two + b"\1\0")
    asked = parse(CONTRACT, body, head_bytes)
    assert asked.work.items == 2
    assert asked.work.inputs == {"x": array("d", [1, 2, 3, 4]), "on": array("B", [1, 0])}


def test_json_and_binary_inputs_can_be_mixed() -> None:
    on = {"data": [True, False], "parameters": {}}
    body, head_bytes = split(head(on=on), x_of_two)
    assert parse(CONTRACT, body, head_bytes).work.inputs["on"] == array("B", [1, 0])


def size(count: Any) -> dict[str, Any]:
    return {"parameters": {"binary_data_size": count}}


@pytest.mark.parametrize(
    ("value", "tail", "words"),
    [
        (head(), x_of_two, "on.parameters.binary_data_size must be from 0 to the 0 rem"),
        (head(), x_of_two + b"\1\0\0", "after the JSON, 35; got 34"),
        (
            head(x=size(31), on=size(3)),
            x_of_two + b"\1\0",
            "inputs.x must have 32 bytes, 4 .*; got 31",
        ),
        (head(x=size(-1)), x_of_two, "from 0 to the 32 remaining bytes; got -1"),
        (head(x=size(2**64 - 1)), x_of_two, "remaining bytes; got 18446744073709551615"),
        (head(x=size(True)), x_of_two, "remaining bytes; got True"),
        (head(x=size("32")), x_of_two, "remaining bytes; got 32"),
        (head(x={"data": [1, 2, 3, 4]}), x_of_two, "binary_data_size or data; got both"),
        (head(x={"parameters": 3}), x_of_two, "x.parameters must be a JSON object; got an integer"),
        (head(x={"shape": [2, 3]}), x_of_two, r"x.shape must be \[2, 2\]; got \[2, 3\]"),
        (head(x={"shape": [2**62, 2]}), x_of_two, "at most 4 items"),
        (head(x={"shape": [-2, 2]}), x_of_two, "at least 1 item; got -2"),
        (head(), struct.pack("<4d", 1, 2, 3, float("nan")) + b"\1\0", "finite values"),
        (head(), x_of_two + b"\1\2", "each BOOL must be one byte, 0 or 1"),
        (head(on={"parameters": {}}), x_of_two, "on.data must be a list, flat or nested; got null"),
        (
            head(x={"parameters": {"shared_memory_region": "a"}}),
            x_of_two,
            "shared memory is not supported",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_byte_counts_are_refused(value: dict[str, Any], tail: bytes, words: str) -> None:
    body, head_bytes = split(value, tail)
    with pytest.raises(RequestError, match=words):
        parse(CONTRACT, body, head_bytes)


@pytest.mark.parametrize("head_bytes", [-1, 1000])
def test_json_length_beyond_the_body_is_refused(head_bytes: int) -> None:
    with pytest.raises(InvalidRequestError, match=f"{HEAD_LENGTH} must be from 0 to the 2 bytes"):
        parse(CONTRACT, b"{}", head_bytes)


@pytest.mark.parametrize(
    ("fields", "binary"),
    [
        ({}, False),
        ({"outputs": []}, False),
        ({"parameters": {"sequence_id": 0, "sequence_start": False}}, False),
        ({"parameters": {"binary_data_output": True}}, True),
        ({"outputs": [{"name": "sum"}]}, False),
        ({"outputs": [{"name": "sum", "parameters": {"binary_data": True}}]}, True),
        (
            {
                "outputs": [{"name": "sum", "parameters": {"binary_data": False}}],
                "parameters": {"binary_data_output": True},
            },
            False,
        ),
    ],
)
def test_output_is_binary_if_requested(fields: dict[str, Any], binary: bool) -> None:
    body, head_bytes = split(head() | fields, x_of_two + b"\1\0")
    asked = parse(CONTRACT, body, head_bytes)
    assert asked.wanted == (Wanted(SUM, binary),)
    content, answered = render("m", "1", asked, {"sum": array("d", [3, 7])})
    if binary:
        assert content[answered:] == struct.pack("<2d", 3, 7)
        (output,) = orjson.loads(content[:answered])["outputs"]
        assert output["parameters"] == {"binary_data_size": 16}
        assert "data" not in output
    else:
        assert answered is None
        assert orjson.loads(content)["outputs"][0]["data"] == [3, 7]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"outputs": {}}, "outputs must be a list of objects; got an object"),
        ({"parameters": {"sequence_id": 42}}, "sequence_id must be absent or 0: .*; got 42"),
        ({"parameters": {"sequence_id": "chat"}}, "sequence_id must be absent or 0: .*; got chat"),
        ({"outputs": [3]}, "outputs.0 must be a JSON object; got an integer"),
        ({"outputs": [{"name": 3}]}, "outputs.0.name must be a string"),
        ({"outputs": [{"name": "sum"}] * 2}, "one is named twice"),
        ({"outputs": [{"name": "sum", "parameters": {"classification": 3}}]}, "is not supported"),
        ({"outputs": [{"name": "sum", "parameters": {"binary_data": 1}}]}, "true or false"),
        ({"parameters": {"binary_data_output": "yes"}}, "true or false; got a string"),
        ({"parameters": []}, "parameters must be a JSON object; got a list"),
        ({"parameters": {"timeout": -5}}, "parameters.timeout must be microseconds"),
        ({"parameters": {"timeout": 1.5}}, "parameters.timeout must be microseconds"),
    ],
)
def test_invalid_parameters_are_refused(fields: dict[str, Any], words: str) -> None:
    body, head_bytes = split(head() | fields, x_of_two + b"\1\0")
    with pytest.raises(InvalidRequestError, match=words):
        parse(CONTRACT, body, head_bytes)


def test_timeout_parameter_is_in_microseconds() -> None:
    body, head_bytes = split(head(parameters={"timeout": 250_000}), x_of_two + b"\1\0")
    assert parse(CONTRACT, body, head_bytes).timeout_s == 0.25
    assert (
        parse(CONTRACT, *split(head(parameters={"timeout": 0}), x_of_two + b"\1\0")).timeout_s
        is None
    )


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ([1, 5], None),
        ([1, 9], "the dynamic dimension must be from 1 to 8; got 9"),
        ([1, 0], "the dynamic dimension must be from 1 to 8; got 0"),
        ([1, -1], "from 1 to 8; got -1"),
        ([1], "2 dimensions; got 1"),
        ([1, 5, 1], r"shape must be \[1, 5\]"),
    ],
)
def test_request_length_is_that_of_its_dynamic_input(shape: list[int], words: str | None) -> None:
    contract = Contract(Signature((TOKENS,), (TOKENS,), lengths=(4, 8)), max_items=4)
    tensor = {"name": "tokens", "shape": shape, "datatype": "INT32", "data": [7] * 5}
    body = orjson.dumps({"inputs": [tensor]})
    if words is None:
        asked = parse(contract, body)
        assert (asked.work.items, asked.work.length) == (1, 5)
        answer = render("m", "1", asked, {"tokens": array("i", [7] * 5)}).content
        assert orjson.loads(answer)["outputs"][0]["shape"] == [1, 5]
    else:
        with pytest.raises(InvalidRequestError, match=words):
            parse(contract, body)


FORMATS = {"FP16": "e", "FP32": "f", "FP64": "d"}


def valid(datatype: str, raw: bytes) -> bool:
    if datatype == "BF16":  # the upper half of an FP32
        raw = b"".join(b"\0\0" + raw[at : at + 2] for at in range(0, len(raw), 2))
        datatype = "FP32"
    if datatype in FORMATS:
        code = FORMATS[datatype]
        numbers = struct.unpack(f"<{len(raw) // struct.calcsize(code)}{code}", raw)
        return all(abs(number) < float("inf") for number in numbers)
    return datatype != "BOOL" or set(raw) <= {0, 1}


@given(st.sampled_from(sorted({*DATATYPES} - {"BYTES"})), st.integers(0, 200), st.data())
def test_bytes_and_numbers_round_trip(datatype: str, count: int, data: Any) -> None:
    width = DATATYPES[datatype].width
    raw = data.draw(st.binary(min_size=count * width, max_size=count * width))
    spec = TensorSpec("x", datatype, (max(count, 1),))
    if valid(datatype, raw):
        assert to_bytes(from_bytes(spec, raw, count, "x")) == raw
    else:
        with pytest.raises(InvalidRequestError):
            from_bytes(spec, raw, count, "x")


@pytest.mark.parametrize("count", [3, 300], ids=["few", "many"])
@pytest.mark.parametrize(("datatype", "code"), [*FORMATS.items()])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_single_nan_or_infinity_is_refused(
    count: int, datatype: str, code: str, bad: float
) -> None:
    spec = TensorSpec("x", datatype, (count,))
    widest = DATATYPES[datatype].highest
    good = struct.pack(f"<{count}{code}", *[widest] * count)
    assert len(from_bytes(spec, good, count, "x")) == count
    with pytest.raises(InvalidRequestError, match="finite values"):
        from_bytes(spec, struct.pack(f"<{count}{code}", *[1.0] * (count - 1), bad), count, "x")


SMALL = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["inputs", "outputs", "name", "shape", "datatype", "data", "parameters"]
            )
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=50)
@given(value=SMALL, tail=st.binary(max_size=40), shift=st.integers(-3, 3))
def test_arbitrary_body_is_parsed_or_refused(value: Any, tail: bytes, shift: int) -> None:
    text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS) if _dumps(value) else b"{"
    for body, head_bytes in ((text + tail, len(text) + shift), (text + tail, None)):
        with pytest.raises(RequestError) as caught:
            parse(CONTRACT, body, head_bytes)
        assert 400 <= caught.value.status < 500
        assert len(caught.value.message) < 400


@settings(max_examples=50)
@given(
    replaced=st.dictionaries(
        st.sampled_from(["name", "shape", "datatype", "data", "parameters"]), SMALL, max_size=2
    ),
    tail=st.binary(max_size=40),
)
def test_mutated_tensor_is_parsed_or_refused(replaced: dict[str, Any], tail: bytes) -> None:
    value = head(x=replaced)
    if not _dumps(value):
        return
    body, head_bytes = split(value, tail)
    try:
        asked = parse(CONTRACT, body, head_bytes)
    except RequestError as error:
        assert 400 <= error.status < 500  # noqa: PT017 - either way is right
    else:
        assert len(asked.work.inputs["x"]) == 2 * asked.work.items


def _dumps(value: Any) -> bool:
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


async def test_binary_data_over_http_round_trips(start: Start) -> None:
    world = await start()
    x = {"name": "x", "shape": [2, 2], "datatype": "FP64", "parameters": {"binary_data_size": 32}}
    body, head_bytes = split({"inputs": [x], "parameters": {"binary_data_output": True}}, x_of_two)
    answer = await world.http.post(
        "/v2/models/m/versions/1/infer", content=body, headers={HEAD_LENGTH: str(head_bytes)}
    )
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    answered = int(answer.headers[HEAD_LENGTH])
    assert answer.content[answered:] == struct.pack("<2d", 3, 7)
    for wrong in ("", "x", "-1", "1e1", "9" * 5000, str(len(body) + 1)):
        refused = await world.http.post(
            "/v2/models/m/infer", content=body, headers={HEAD_LENGTH: wrong}
        )
        assert refused.status_code == 400
        assert len(refused.text) < 200
    assert world.engine.batches == [2]
    await balanced_metrics(world)


async def test_compressed_body_is_refused_by_its_encoding(start: Start) -> None:
    world = await start()
    for path in ("/v2/models/m/infer", "/v1/models/m:predict"):
        answer = await world.http.post(
            path, content=b"\x1f\x8b\x08", headers={"content-encoding": "gzip"}
        )
        assert answer.status_code == 415
        assert "content-encoding must be identity; got 'gzip'" in answer.text
