"""The official client of the protocol, as it is installed, against a server process."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.grpc.model_config_pb2
import tritonclient.grpc.service_pb2
import tritonclient.http
import tritonclient.http.aio
from google.protobuf.descriptor import Descriptor
from tritonclient.utils import InferenceServerException

from free_ports import free_port
from headroom_server.open_inference_grpc import messages_pb2
from support.server_process import serving

ROWS = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
SUMS = [10.0, 26.0]

pytestmark = [
    pytest.mark.clock,
    # gevent, under the synchronous HTTP client, has its own threads' locks before its first use
    pytest.mark.filterwarnings("ignore::DeprecationWarning:gevent"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:geventhttpclient"),
]


@asynccontextmanager
async def both_protocols(**settings: object) -> AsyncIterator[tuple[str, str]]:
    grpc_port = free_port()
    async with serving(GRPC_PORT=grpc_port, **settings) as server:
        await server.ready()
        yield server.url.removeprefix("http://"), f"127.0.0.1:{grpc_port}"


@contextmanager
def client_of(kind: Any, url: str) -> Iterator[Any]:
    client = kind.InferenceServerClient(url=url)
    try:
        yield client
    finally:
        client.close()


def inputs(kind: Any, rows: Any = ROWS, datatype: str = "FP64", **binary: bool) -> list[Any]:
    tensor = kind.InferInput("x", list(rows.shape), datatype)
    tensor.set_data_from_numpy(rows, **binary)
    return [tensor]


def tells_what_serves(client: Any, config: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("m")
    assert client.is_model_ready("m", "1")
    assert config["max_batch_size"] == 8
    assert config["input"][0]["data_type"] == "TYPE_FP64"


def refuses(kind: Any, client: Any) -> None:
    rows, whole = ROWS, inputs(kind)
    for model, options, words in (
        ("other", {"inputs": whole}, "serves 'm'; got 'other'"),
        ("m", {"inputs": whole, "model_version": "9"}, "version '1'; got '9'"),
        ("m", {"inputs": inputs(kind, rows[:, :3].copy())}, "shape must be "),
        ("m", {"inputs": inputs(kind, rows.astype(np.float32), "FP32")}, "datatype must be FP64"),
        ("m", {"inputs": inputs(kind, np.full((1, 4), np.nan))}, "finite"),
        ("m", {"inputs": inputs(kind, np.ones((9, 4)))}, "at most 8 items"),
        ("m", {"inputs": whole, "outputs": [kind.InferRequestedOutput("z")]}, "got 'z'"),
    ):
        with pytest.raises(InferenceServerException, match=words):
            client.infer(model, **options)


async def test_tritonclient_over_http() -> None:
    kind = tritonclient.http
    async with both_protocols() as (url, _):
        with client_of(kind, url) as client:
            tells_what_serves(client, client.get_model_config("m"))
            assert client.get_server_metadata()["name"] == "headroom"
            assert client.get_model_metadata("m")["inputs"] == [
                {"name": "x", "datatype": "FP64", "shape": [-1, 4]}
            ]
            for binary_in in (True, False):
                for outputs in (
                    None,
                    [kind.InferRequestedOutput("sum", binary_data=True)],
                    [kind.InferRequestedOutput("sum", binary_data=False)],
                ):
                    answer = client.infer(
                        "m",
                        inputs(kind, binary_data=binary_in),
                        outputs=outputs,
                        request_id="7",
                        model_version="1",
                    )
                    assert answer.as_numpy("sum").tolist() == SUMS
                    assert answer.get_response()["id"] == "7"
            refuses(kind, client)
            for algorithm in ("gzip", "deflate"):
                with pytest.raises(InferenceServerException, match="content-encoding"):
                    client.infer("m", inputs(kind), request_compression_algorithm=algorithm)
        async with tritonclient.http.aio.InferenceServerClient(url=url) as patient:
            answer = await patient.infer("m", inputs(tritonclient.http.aio))
            assert answer.as_numpy("sum").tolist() == SUMS


async def test_tritonclient_over_grpc() -> None:
    kind = tritonclient.grpc
    async with both_protocols() as (_, url):
        with client_of(kind, url) as client:
            tells_what_serves(client, client.get_model_config("m", as_json=True)["config"])
            assert client.get_server_metadata().name == "headroom"
            assert [*client.get_model_metadata("m").inputs[0].shape] == [-1, 4]
            answer = client.infer("m", inputs(kind), request_id="7", model_version="1")
            assert answer.as_numpy("sum").tolist() == SUMS
            assert answer.get_response().id == "7"
            refuses(kind, client)
        async with tritonclient.grpc.aio.InferenceServerClient(url=url) as patient:
            answer = await patient.infer("m", inputs(tritonclient.grpc.aio))
            assert answer.as_numpy("sum").tolist() == SUMS


async def test_tritonclient_streams_batches_in_order() -> None:
    kind = tritonclient.grpc
    async with both_protocols(EMULATED_FIXED_COST_S=0.001) as (_, url):
        with client_of(kind, url) as client:
            answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
            client.start_stream(lambda result, error: answers.put((result, error)))
            for number in range(20):
                client.async_stream_infer("m", inputs(kind), request_id=str(number))
            client.async_stream_infer("other", inputs(kind), request_id="bad")
            client.stop_stream()
            found = [answers.get(timeout=5) for _ in range(21)]
    assert [one.get_response().id for one, _ in found[:20]] == [str(number) for number in range(20)]
    assert all(one.as_numpy("sum").tolist() == SUMS for one, _ in found[:20])
    assert "'other'" in str(found[20][1])


async def test_tritonclient_streams_text() -> None:
    async with (
        both_protocols(ENGINE="generation-emulated") as (_, url),
        tritonclient.grpc.aio.InferenceServerClient(url=url) as client,
    ):
        assert await client.is_model_ready("m")
        config = await client.get_model_config("m", as_json=True)
        assert config["config"]["model_transaction_policy"]["decoupled"]
        text = tritonclient.grpc.aio.InferInput("text_input", [1], "BYTES")
        text.set_data_from_numpy(np.array([b"Once"], dtype=object))

        async def requests() -> AsyncIterator[dict[str, Any]]:
            yield {
                "model_name": "m",
                "inputs": [text],
                "request_id": "7",
                "enable_empty_final_response": True,
                "parameters": {"max_tokens": 8},
            }

        found = [one async for one in client.stream_infer(requests())]
    results = [result for result, error in found if error is None]
    assert len(results) == len(found)
    words = [one.as_numpy("text_output") for one in results]
    assert len(b"".join(one[0] for one in words if one is not None)) == 8
    last = results[-1].get_response().parameters
    assert last["triton_final_response"].bool_param
    assert last["generated_tokens"].int64_param == 8


async def test_tritonclient_timeouts_are_deadlines() -> None:
    slow = {"EMULATED_FIXED_COST_S": 0.1, "MAX_BATCH_SIZE": 2}
    async with both_protocols(**slow) as (http_url, grpc_url):
        with client_of(tritonclient.grpc, grpc_url) as client:
            with pytest.raises(
                InferenceServerException, match=r"Deadline Exceeded|after the deadline"
            ):
                client.infer("m", inputs(tritonclient.grpc), client_timeout=0.05)
            answer = client.infer("m", inputs(tritonclient.grpc), client_timeout=5)
            assert answer.as_numpy("sum").tolist() == SUMS
        with client_of(tritonclient.http, http_url) as client:
            with pytest.raises(InferenceServerException):
                client.infer("m", inputs(tritonclient.http), timeout=20_000)
            answer = client.infer("m", inputs(tritonclient.http), timeout=5_000_000)
            assert answer.as_numpy("sum").tolist() == SUMS


EMULATED = "engine = 'emulated'\n[emulated]\nload_s = 0\nfixed_cost_s = 0.001\n"


def comes_and_goes(client: Any, entries: Callable[[], Any]) -> None:
    def states() -> list[str]:
        return [f"{one['name']} {one.get('version')} {one.get('state')}" for one in entries()]

    assert states() == ["a 1 READY", "b 1 UNAVAILABLE"]
    client.load_model("b")
    assert client.is_model_ready("b")
    assert states() == ["a 1 READY", "b 1 READY"]
    client.unload_model("b", unload_dependents=True)
    assert states() == ["a 1 READY", "b 1 UNAVAILABLE"]
    for model, options, words in (
        ("c", {}, "no model 'c'"),
        ("-b", {}, "a model's name must consist of letters"),
        ("b", {"config": "{}"}, "read from the repository"),
        ("b", {"config": "{}", "files": {"file:1/model.pt": b"x"}}, "read from the repository"),
    ):
        with pytest.raises(InferenceServerException, match=words):
            client.load_model(model, **options)
    with pytest.raises(InferenceServerException, match="'b' is not served"):
        client.unload_model("b")


async def test_tritonclient_loads_and_unloads_models(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.toml").write_text(EMULATED)
    repository = {"ENGINE": "torch", "MODEL_URI": f"file://{tmp_path}", "MODELS": "a"}
    async with both_protocols(MODEL_CONTROL="explicit", **repository) as (http_url, grpc_url):
        with client_of(tritonclient.grpc, grpc_url) as rpc:
            comes_and_goes(rpc, lambda: rpc.get_model_repository_index(as_json=True)["models"])
        with client_of(tritonclient.http, http_url) as http:
            comes_and_goes(http, http.get_model_repository_index)
    async with both_protocols(**repository) as (_, grpc_url):
        with (
            client_of(tritonclient.grpc, grpc_url) as rpc,
            pytest.raises(InferenceServerException, match="HEADROOM_MODEL_CONTROL=explicit"),
        ):
            rpc.unload_model("a")


async def test_tritonclient_calls_survive_a_signal() -> None:
    slow = {"EMULATED_FIXED_COST_S": 0.2, "EMULATED_PER_ITEM_COST_S": 0, "MAX_BATCH_SIZE": 4}
    grpc_port = free_port()
    async with serving(GRPC_PORT=grpc_port, DRAIN_DELAY_S=0, **slow) as server:
        await server.ready()
        kind, url = tritonclient.grpc.aio, f"127.0.0.1:{grpc_port}"
        async with kind.InferenceServerClient(url=url) as client:
            calls = [asyncio.create_task(client.infer("m", inputs(kind))) for _ in range(8)]
            await server.shows("requests_received_total", 8)  # two items each: two run, six wait
            assert not any(call.done() for call in calls)
            server.process.terminate()
            answers = await asyncio.wait_for(asyncio.gather(*calls), 10)
            assert [one.as_numpy("sum").tolist() for one in answers] == [SUMS] * 8
            with pytest.raises(InferenceServerException):
                await client.infer("m", inputs(kind))
        assert await asyncio.wait_for(server.process.wait(), 10) == 0


TOKENS = """
import torch
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec

class Tokens:
    # how long each of two strings is, in capitals, and half of a number in 16 bits

    signature = Signature(
        (TensorSpec("text", "BYTES", (2,)), TensorSpec("half", "FP16"), TensorSpec("id", "UINT64")),
        (
            TensorSpec("length", "UINT16", (2,)),
            TensorSpec("upper", "BYTES", (2,)),
            TensorSpec("half", "FP16"),
            TensorSpec("id", "UINT64"),
        ),
    )

    def load(self, directory, device):
        pass

    def preprocess(self, inputs):
        return {name: one if name == "text" else one.clone() for name, one in inputs.items()}

    def forward(self, batch):
        lengths = [[len(one) for one in row] for row in batch["text"]]
        return batch | {"length": torch.tensor(lengths), "half": batch["half"] / 2}

    def postprocess(self, result):
        return result | {"upper": [[one.upper() for one in row] for row in result["text"]]}
"""


async def test_tritonclient_strings_and_16_bit_numbers_pass_through_a_class(tmp_path: Path) -> None:
    (tmp_path / "tokens_model.py").write_text(TOKENS)
    text = np.array([["abc", "né"], ["", "x" * 300]], dtype=object)
    sent = {
        "text": (text, "BYTES"),
        "half": (np.array([1.5, -3], dtype=np.float16), "FP16"),
        "id": (np.array([2**64 - 1, 7], dtype=np.uint64), "UINT64"),
    }
    grpc_port = free_port()
    async with serving(
        {"PYTHONPATH": str(tmp_path)},
        ENGINE="torch",
        MODEL_CLASS="tokens_model:Tokens",
        GRPC_PORT=grpc_port,
        MAX_BATCH_SIZE=4,
    ) as server:
        await server.ready()
        for kind, url in (
            (tritonclient.grpc, f"127.0.0.1:{grpc_port}"),
            (tritonclient.http, server.url.removeprefix("http://")),
        ):
            with client_of(kind, url) as client:
                tensors = []
                for name, (values, datatype) in sent.items():
                    tensors.append(kind.InferInput(name, list(values.shape), datatype))
                    tensors[-1].set_data_from_numpy(values)
                answer = client.infer("m", tensors)
                assert answer.as_numpy("length").tolist() == [[3, 3], [0, 300]]
                assert answer.as_numpy("length").dtype == np.uint16
                said = [[one.decode() for one in row] for row in answer.as_numpy("upper")]
                assert said == [["ABC", "Né"], ["", "X" * 300]]
                assert answer.as_numpy("half").tolist() == [0.75, -1.5]
                assert answer.as_numpy("id").tolist() == [2**64 - 1, 7]


def official(name: str) -> Descriptor:
    for module in (tritonclient.grpc.service_pb2, tritonclient.grpc.model_config_pb2):
        found: Descriptor | None = module.DESCRIPTOR.message_types_by_name.get(name)
        if found is not None:
            return found
    raise AssertionError(name)


def same(ours: Descriptor, theirs: Descriptor) -> None:
    for field in ours.fields:
        other = theirs.fields_by_name[field.name]
        assert (field.number, field.type, field.is_repeated) == (
            other.number,
            other.type,
            other.is_repeated,
        ), field.full_name
        if field.message_type is not None:
            assert other.message_type is not None
            assert field.message_type.full_name == other.message_type.full_name
        if field.enum_type is not None:
            assert other.enum_type is not None
            assert field.enum_type.values_by_name.keys() == other.enum_type.values_by_name.keys()
            for value in field.enum_type.values:
                assert value.number == other.enum_type.values_by_name[value.name].number
    for nested in ours.nested_types:
        same(nested, theirs.nested_types_by_name[nested.name])


def test_grpc_messages_match_the_official_client() -> None:
    ours = messages_pb2.DESCRIPTOR
    assert len(ours.message_types_by_name) > 15
    for name, message in ours.message_types_by_name.items():
        if not name.startswith("HealthCheck"):  # of grpc.health.v1: `test_grpc_health`, as bytes
            same(message, official(name))
    (service,) = ours.services_by_name.values()
    theirs = tritonclient.grpc.service_pb2.DESCRIPTOR.services_by_name[service.name]
    assert service.full_name == theirs.full_name
    assert {one.name for one in service.methods} <= {one.name for one in theirs.methods}
