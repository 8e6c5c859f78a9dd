"""Any input is served or refused with a safe 4xx: no 500, no traceback, no hang."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import struct
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_schema_conformance,
    status_code_conformance,
)

from fuzzing import fuzz
from headroom_server.engine import LoadError
from headroom_server.errors import RequestError
from headroom_server.open_inference_grpc import messages
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.protocols.contract import Contract
from headroom_server.protocols.open_inference import HEAD_LENGTH, parse
from headroom_server.protocols.typed_json import TypedJsonCodec
from headroom_server.repository.checking import check as check_repository
from headroom_server.repository.description import parse as read
from headroom_server.tensors import Signature, TensorSpec
from server_process import Server, serving

pytestmark = pytest.mark.clock

SIGNATURE = Signature(
    (
        TensorSpec("x", "FP32", (2,)),
        TensorSpec("on", "BOOL"),
        TensorSpec("tokens", "INT16", (-1,)),
        TensorSpec("half", "FP16"),
        TensorSpec("text", "BYTES"),
    ),
    (TensorSpec("y", "FP64"),),
    lengths=(4, 8),
)
CONTRACT = Contract(SIGNATURE, max_items=3)
FORM = TypedJsonCodec(CONTRACT)

V2: dict[str, Any] = {
    "id": "7",
    "inputs": [
        {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1.5, 2]},
        {"name": "on", "shape": [1], "datatype": "BOOL", "data": [True]},
        {"name": "tokens", "shape": [1, 3], "datatype": "INT16", "data": [[5, 6, 7]]},
        {"name": "half", "shape": [1], "datatype": "FP16", "data": [0.5]},
        {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["ab"]},
    ],
    "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
    "parameters": {"timeout": 1_000_000},
}
SIZES = (8, 1, 6, 2, 6)
BINARY = {
    "inputs": [
        {k: v for k, v in tensor.items() if k != "data"}
        | {"parameters": {"binary_data_size": size}}
        for tensor, size in zip(V2["inputs"], SIZES, strict=True)
    ]
}
TAIL = struct.pack("<2f?3heI2s", 1.5, 2, True, 5, 6, 7, 0.5, 2, b"ab")
TYPED = {"instances": [{"x": [1.5, 2], "on": True, "tokens": [5, 6, 7], "half": 0.5, "text": "ab"}]}

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from([-1, 0, 2**31, "x", "FP32", 1e39, "\0"])
    | st.builds(list)
    | st.builds(dict)
    | st.builds(lambda: [[], 1])
)


@st.composite
def bent(draw: st.DrawFn, value: Any, leaves: st.SearchStrategy[Any] = LEAVES) -> Any:
    """A copy with up to three places replaced, dropped, doubled or moved."""
    copy = orjson.loads(orjson.dumps(value))
    for _ in range(draw(st.integers(0, 3))):
        node = copy
        while True:
            keys = [*node] if isinstance(node, dict) else [*range(len(node))]
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(node[key], dict | list) and node[key] and draw(st.booleans()):
                node = node[key]
                continue
            how = draw(st.integers(0, 2))
            if how == 0:
                node[key] = draw(leaves)
            elif how == 1:
                del node[key]
            elif isinstance(node, list):
                node.append(node[key])
            else:
                node[draw(st.sampled_from(["data", "shape", "parameters", "é"]))] = node[key]
            break
    return copy


@st.composite
def mangled(draw: st.DrawFn, raw: bytes) -> bytes:
    """A copy with some bytes changed, dropped, doubled or put in between."""
    copy = bytearray(raw)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(copy)))
        width = draw(st.integers(0, 8))
        copy[at : at + width] = draw(
            st.binary(max_size=8) | st.just(bytes(copy[:at])) | st.just(b"\r\n")
        )
    return bytes(copy)


def as_json(value: Any) -> bytes:
    """With NaN and infinity as Python's own writer has them, which is not JSON."""
    import json  # noqa: PLC0415

    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def parses_or_refuses(parsing: Callable[[], Any]) -> Any:
    try:
        return parsing()
    except RequestError as error:
        safe = 400 <= error.status < 500 and len(error.message) < 400
        assert safe, error.message  # noqa: PT017 - either way is right
        return None


def fits(work: Any) -> None:
    assert 1 <= work.items <= 3
    assert 1 <= work.length <= 8
    for spec in SIGNATURE.inputs:
        assert spec.count(work.inputs[spec.name]) == spec.elements_at(work.length) * work.items


def test_unmutated_requests_are_served() -> None:
    for asked in (
        parse(CONTRACT, as_json(V2)),
        parse(CONTRACT, as_json(BINARY) + TAIL, len(as_json(BINARY))),
    ):
        fits(asked.work)
    fits(FORM.parse(as_json(TYPED)))


def test_fuzzed_open_inference_bodies_are_handled() -> None:
    def check(example: tuple[bytes, int | None]) -> None:
        asked = parses_or_refuses(lambda: parse(CONTRACT, *example))
        if asked is not None:
            fits(asked.work)

    bodies = bent(V2).map(as_json) | st.just(as_json(V2)).flatmap(mangled)
    fuzz(bodies.map(lambda body: (body, None)), check, examples=100)


def test_fuzzed_binary_bodies_are_handled() -> None:
    def check(example: tuple[Any, bytes, int]) -> None:
        head, tail = as_json(example[0]), example[1]
        body, head_bytes = head + tail, len(head) + example[2]
        asked = parses_or_refuses(lambda: parse(CONTRACT, body, head_bytes))
        if asked is not None:
            fits(asked.work)

    shifts = st.just(0) | st.integers(-3, 3) | st.sampled_from([-(10**6), 10**6])
    fuzz(st.tuples(bent(BINARY), mangled(TAIL), shifts), check, examples=100)


def test_fuzzed_typed_json_bodies_are_handled() -> None:
    def check(body: bytes) -> None:
        work = parses_or_refuses(lambda: FORM.parse(body))
        if work is not None:
            fits(work)

    fuzz(bent(TYPED).map(as_json) | st.just(as_json(TYPED)).flatmap(mangled), check, examples=100)


def test_fuzzed_grpc_messages_are_handled() -> None:
    request = pb.ModelInferRequest(
        inputs=[
            {key: tensor[key] for key in ("name", "shape", "datatype")} for tensor in V2["inputs"]
        ],
        raw_input_contents=[TAIL[begin:end] for begin, end in pairwise(accumulate((0, *SIZES)))],
        parameters={"timeout": pb.InferParameter(int64_param=5)},
    )
    assert parses_or_refuses(lambda: messages.parse(CONTRACT, request)) is not None

    def check(raw: bytes) -> None:
        try:
            bent_request = pb.ModelInferRequest.FromString(raw)
        except Exception as error:  # noqa: BLE001 - what the library raises is the question
            assert type(error).__name__ == "DecodeError"  # noqa: PT017
            return
        asked = parses_or_refuses(lambda: messages.parse(CONTRACT, bent_request))
        if asked is not None:
            fits(asked.work)

    fuzz(mangled(request.SerializeToString()), check, examples=100)


# ---- a description


DESCRIPTION: dict[str, Any] = {
    "engine": "torch",
    "architecture": "mlp",
    "format": "safetensors",
    "weights": "model.safetensors",
    "sha256": "0" * 64,
    "max_batch_size": 8,
    "batches": [1, 8],
    "compile": False,
    "parameters": {"sizes": [2, 3]},
    "inputs": [{"name": "x", "datatype": "FP32", "shape": [2]}],
    "outputs": [{"name": "y", "datatype": "FP32", "shape": [3]}],
    "classes": {"quick": {"priority": 1, "deadline_s": 0.1}},
    "cache": {"bytes": 1000, "ttl_s": 60},
    "warm_up": [{"inputs": {"x": [1.5, 2.0]}}],
}
PROGRAM = {
    key: one for key, one in DESCRIPTION.items() if key not in {"architecture", "parameters"}
}
CLASS = {key: one for key, one in DESCRIPTION.items() if key not in {"weights", "sha256"}} | {
    "architecture": "json:Model",
    "lengths": [4, 8],
    "inputs": [{"name": "t", "datatype": "INT64", "shape": [-1]}],
    "mask": {"name": "mask", "datatype": "BOOL"},
    "warm_up": [{"inputs": {"t": [1, 2, 3]}}],
}
EMULATED = {"engine": "emulated", "emulated": {"fixed_cost_s": 0.006, "lengths": [4]}}
NAMES = ["__main__:Model", "builtins:int", "a.b.c:D", "convnet", "BYTES", "UINT64", -1, 2**70]


def as_toml(value: Any) -> str:
    """On one line, as after a key."""
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{as_toml(key)} = {as_toml(one)}" for key, one in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, str):
        return orjson.dumps(value).decode().replace("\x7f", "\\u007f")
    if isinstance(value, bool) or value is None:
        return str(bool(value)).lower()
    return repr(value)


def described(value: Any) -> bytes:
    lines = [f"{as_toml(key)} = {as_toml(one)}\n" for key, one in value.items()]
    return "".join(lines).encode()


def test_fuzzed_descriptions_are_handled(tmp_path: Path) -> None:
    whole = [DESCRIPTION, PROGRAM | {"format": "export", "weights": "m.pt2"}, CLASS, EMULATED]
    for one in whole:
        if "compile" in one and "architecture" not in one:
            del one["compile"]
        read(described(one), "model.toml")
    file = tmp_path / "m" / "model.toml"
    file.parent.mkdir()

    def check(data: bytes) -> None:
        try:
            read(data, "model.toml")
        except LoadError as error:
            lines = str(error).splitlines()
            assert lines
            assert all(line.startswith("model.toml: ") for line in lines)
        file.write_bytes(data)
        for trusted in (False, True):
            (finding,) = check_repository(tmp_path, trusted=trusted)
            assert "\n" not in str(finding)
            assert finding.model.startswith("m")

    bents = st.sampled_from(whole).flatmap(partial(bent, leaves=LEAVES | st.sampled_from(NAMES)))
    bytes_ = st.sampled_from(whole).map(described).flatmap(mangled)
    fuzz(bents.map(described) | bytes_, check, examples=100)


# ---- a server process


PREDICT = b'{"instances":[[1,2,3,4]]}'
INFER = orjson.dumps(
    {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP64", "data": [1, 2, 3, 4]}]}
)
PAUSE_S = 0.003
LAST = b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


def request_of(path: bytes, body: bytes, *headers: bytes) -> bytes:
    lines = [b"POST %s HTTP/1.1" % path, b"host: x", b"content-length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


REQUESTS = [
    request_of(b"/v1/models/m:predict", PREDICT),
    request_of(b"/v2/models/m/versions/1/infer", INFER, b"x-request-timeout: 5"),
    request_of(
        b"/v2/models/m/infer", INFER, HEAD_LENGTH.encode() + b": %d" % len(INFER), b"x-tenant: a"
    ),
    request_of(b"/v2/models/m/infer", b"5\r\nabcde\r\n0\r\n\r\n", b"transfer-encoding: chunked"),
    b"GET /v2/models/m/config HTTP/1.1\r\nhost: x\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
]


def talk(port: int, pieces: Sequence[bytes], pause_s: float) -> bytes:
    """Everything the server sends until it closes; each piece after a pause is a separate read."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        said = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause_s)
            while received := connection.recv(65536):
                said += received
        except ConnectionError:  # closed before all was sent: what it said is what counts
            pass
        return said


def is_safe(said: bytes) -> None:
    assert {*re.findall(rb"HTTP/1\.1 (\d)", said)} <= {b"1", b"2", b"4"}, said
    assert not re.search(rb"Traceback|\.py\b|/home|/root|/work|site-packages", said), said


async def quiet(server: Server) -> None:
    """It lives, every request is in one place, none failed, and the log has no traceback."""
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert (await http.get("/v2/health/live")).status_code == 200
        text = (await http.get("/metrics")).text
    ended = {
        outcome: float(count)
        for outcome, count in re.findall(r'requests_total{.*outcome="(\w+)"} (\S+)', text)
    }
    received = re.search(r"received_total{.*} (\S+)", text)
    assert received is not None
    assert float(received[1]) == sum(ended.values())
    assert ended.get("failed", 0) == 0
    server.process.send_signal(signal.SIGTERM)
    _, log = await asyncio.wait_for(server.process.communicate(), 20)
    assert b"Traceback" not in log, log.decode()


async def test_fuzzed_http_bytes_are_handled() -> None:
    async with serving(RECEIVE_TIMEOUT_S=0.4, DRAIN_DELAY_S=0) as server:
        await server.ready()
        port = int(server.url.rpartition(":")[2])
        pieces = st.sampled_from(REQUESTS).flatmap(mangled) | st.sampled_from(REQUESTS)
        several = st.lists(pieces, min_size=1, max_size=3).map(lambda some: [*some, LAST])
        at_once = several.map(lambda some: (b"".join(some),))
        await asyncio.to_thread(
            fuzz, at_once | several, lambda sent: is_safe(talk(port, sent, PAUSE_S)), examples=40
        )
        await quiet(server)


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


# Requests that the document allows are accepted, and no others. For v2 it does not describe
# everything: the number of elements that a shape requires.
EXPLORED = {
    "/v1/models/m:predict": [*CHECKS, negative_data_rejection, positive_data_acceptance],
    "/v2/models/m/infer": [*CHECKS, negative_data_rejection],
    "/v2/models/m/versions/1/infer": CHECKS,
}


async def test_responses_match_the_openapi_document() -> None:
    async with serving(EMULATED_FIXED_COST_S=0.0005, DRAIN_DELAY_S=0) as server:
        await server.ready()
        await asyncio.to_thread(explore, server.url)
        await quiet(server)


def explore(url: str) -> None:
    # 413, for more items than fit a batch, is not among its rejections
    refusals = {"checks": {"negative_data_rejection": {"expected-statuses": ["4xx"]}}}
    config = SchemathesisConfig.from_dict(refusals)
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", config=config)
    modes = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
    for path, checks in EXPLORED.items():
        for mode in modes:
            cases = schema[path]["POST"].as_strategy(generation_mode=mode)
            fuzz(
                cases,
                partial(Case.call_and_validate, checks=checks),
                examples=12,
                share=1 / (len(EXPLORED) * len(modes)),
            )
