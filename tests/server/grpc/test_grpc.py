"""Open Inference Protocol v2 over gRPC: answers, metadata, invalid requests."""

from __future__ import annotations

import asyncio
import json
import re
import struct
from dataclasses import replace
from typing import Any

import grpc
import pytest
from grpc import aio

from headroom_server.open_inference_grpc import messages_pb2 as pb
from support.grpc_calls import Code, StartCalls, Tensor, raw
from support.server_world import balanced_metrics

pytestmark = pytest.mark.clock


Output = pb.ModelInferRequest.InferRequestedOutputTensor


def typed(*numbers: float, **fields: Any) -> pb.ModelInferRequest:
    tensor = Tensor(name="x", datatype="FP64", shape=[len(numbers) // 2, 2])
    tensor.contents.fp64_contents.extend(numbers)
    return pb.ModelInferRequest(**{"model_name": "m", "inputs": [tensor]} | fields)


def shared() -> Tensor:
    region = {"shared_memory_region": pb.InferParameter(string_param="r")}
    return Tensor(name="x", datatype="FP64", shape=[1, 2], parameters=region)


def mixed() -> Tensor:
    tensor = Tensor(name="x", datatype="FP64", shape=[1, 2])
    tensor.contents.fp64_contents.extend((1, 2))
    tensor.contents.int64_contents.extend((1, 2))
    return tensor


async def test_grpc_outputs_use_the_encoding_of_the_inputs(calls: StartCalls) -> None:
    one = await calls()
    answer = await one.infer(raw((1, 2), (3, 4), id="abc", outputs=[Output(name="sum")]))
    assert (answer.model_name, answer.model_version, answer.id) == ("m", "1", "abc")
    assert [(o.name, o.datatype, [*o.shape]) for o in answer.outputs] == [("sum", "FP64", [2])]
    assert [*answer.raw_output_contents] == [struct.pack("<2d", 3, 7)]
    answer = await one.infer(typed(1, 2, 3, 4, model_version="1"))
    assert [*answer.outputs[0].contents.fp64_contents] == [3, 7]
    assert not answer.raw_output_contents
    assert one.world.engine.batches == [2, 2]
    seen = await balanced_metrics(one.world)
    assert seen["headroom_requests_total{ok}"] == 2


async def test_grpc_further_try_of_the_client_library_is_counted(calls: StartCalls) -> None:
    """A full queue refuses the first try; the library waits as long as the server says."""
    one = await calls(max_waiting=1)
    held = await one.world.hold_device()
    waiting = asyncio.create_task(one.infer(raw((1, 1))))
    await one.world.waiting(1)
    policy = {
        "maxAttempts": 2,
        "initialBackoff": "0.01s",
        "maxBackoff": "0.01s",
        "backoffMultiplier": 1,
        "retryableStatusCodes": ["RESOURCE_EXHAUSTED"],
    }
    config = json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": policy}]})
    async with aio.insecure_channel(one.target, options=[("grpc.service_config", config)]) as with_:
        error = await replace(one, channel=with_).refused(raw((1, 1)))
    assert error.code() == Code.RESOURCE_EXHAUSTED
    one.world.engine.free.set()
    await held
    await waiting
    seen = await balanced_metrics(one.world)
    assert seen["headroom_requests_total{refused}"] == 2
    assert seen["headroom_requests_retried_total"] == 1


async def test_grpc_health_metadata_and_config_describe_the_model(calls: StartCalls) -> None:
    one = await calls()
    named: dict[str, Any] = {"name": "m", "version": "1"}
    assert (await one.call("ServerLive", pb.ServerLiveRequest(), pb.ServerLiveResponse)).live
    assert (await one.call("ServerReady", pb.ServerReadyRequest(), pb.ServerReadyResponse)).ready
    ready = await one.call("ModelReady", pb.ModelReadyRequest(**named), pb.ModelReadyResponse)
    assert ready.ready
    server = await one.call("ServerMetadata", pb.ServerMetadataRequest(), pb.ServerMetadataResponse)
    assert server.name == "headroom"
    model = await one.call(
        "ModelMetadata", pb.ModelMetadataRequest(name="m"), pb.ModelMetadataResponse
    )
    assert [(t.name, t.datatype, [*t.shape]) for t in model.inputs] == [("x", "FP64", [-1, 2])]
    assert [*model.versions] == ["1"]
    config = (
        await one.call("ModelConfig", pb.ModelConfigRequest(name="m"), pb.ModelConfigResponse)
    ).config
    assert (config.max_batch_size, [*config.input[0].dims]) == (4, [2])
    assert config.input[0].data_type == pb.TYPE_FP64
    assert not config.output[0].dims
    one.world.runner.drain()
    assert not (
        await one.call("ServerReady", pb.ServerReadyRequest(), pb.ServerReadyResponse)
    ).ready


SHORT = struct.pack("<3d", 1, 2, 3)


BAD = [
    pytest.param(
        b"\xff\xff\xff", Code.INVALID_ARGUMENT, "must be a ModelInferRequest", id="no message"
    ),
    pytest.param(b"", Code.NOT_FOUND, "serves 'm'; got ''", id="nothing"),
    pytest.param(raw((1, 2), model_name="q"), Code.NOT_FOUND, "got 'q'", id="model"),
    pytest.param(raw((1, 2), model_version="7"), Code.NOT_FOUND, "got '7'", id="version"),
    pytest.param(raw((1, 2), inputs=[]), Code.INVALID_ARGUMENT, r"exactly \['x'\]", id="no input"),
    pytest.param(
        raw((1, 2), inputs=[Tensor()] * 100),
        Code.INVALID_ARGUMENT,
        "inputs must be at most 1 tensors; got 100",
        id="100 inputs",
    ),
    pytest.param(
        raw((1, 2), inputs=[Tensor(name="x", datatype="FP64", shape=[1] * 65)]),
        Code.INVALID_ARGUMENT,
        "at most 64 dimensions; got 65",
        id="65 dimensions",
    ),
    pytest.param(
        raw((1, 2), inputs=[shared()]), Code.INVALID_ARGUMENT, "shared memory", id="shared memory"
    ),
    pytest.param(
        typed(1, 2, inputs=[mixed()]),
        Code.INVALID_ARGUMENT,
        "only fp64_contents",
        id="contents of two datatypes",
    ),
    pytest.param(raw(), Code.INVALID_ARGUMENT, "at least 1 item; got 0", id="no items"),
    pytest.param(raw(*[(1, 1)] * 5), Code.INVALID_ARGUMENT, "at most 4 items", id="too wide"),
    pytest.param(
        raw((1, 2), raw_input_contents=[SHORT]), Code.INVALID_ARGUMENT, "16 bytes", id="bytes"
    ),
    pytest.param(
        raw((1, 2), raw_input_contents=[SHORT] * 2),
        Code.INVALID_ARGUMENT,
        "one for each of the 1 inputs",
        id="one too many",
    ),
    pytest.param(
        typed(1, 2, raw_input_contents=[SHORT]), Code.INVALID_ARGUMENT, "got both", id="both"
    ),
    pytest.param(raw((1, float("nan"))), Code.INVALID_ARGUMENT, "finite values", id="NaN, raw"),
    pytest.param(typed(1, float("inf")), Code.INVALID_ARGUMENT, "finite values", id="inf, typed"),
    pytest.param(
        raw((1, 2), raw_input_contents=[]),
        Code.INVALID_ARGUMENT,
        "fp64_contents must have 2 elements; got 0",
        id="no contents",
    ),
    pytest.param(
        raw((1, 2), outputs=[Output(name="z")]), Code.INVALID_ARGUMENT, "got 'z'", id="output"
    ),
    pytest.param(
        raw((1, 2), outputs=[Output(name="sum")] * 2),
        Code.INVALID_ARGUMENT,
        "at most 1 tensors",
        id="2 outputs",
    ),
    pytest.param(
        raw(
            (1, 2),
            outputs=[
                Output(name="sum", parameters={"classification": pb.InferParameter(int64_param=1)})
            ],
        ),
        Code.INVALID_ARGUMENT,
        "classification is not supported",
        id="classification",
    ),
    pytest.param(
        raw((1, 2), parameters={"timeout": pb.InferParameter(int64_param=-1)}),
        Code.INVALID_ARGUMENT,
        "parameters.timeout must be microseconds",
        id="timeout",
    ),
    pytest.param(
        raw((1, 2), parameters={"sequence_id": pb.InferParameter(int64_param=42)}),
        Code.INVALID_ARGUMENT,
        "parameters.sequence_id must be absent or 0",
        id="sequence",
    ),
    pytest.param(raw((1, 2), id="i" * 2000), Code.INVALID_ARGUMENT, "id must be a string", id="id"),
    pytest.param(
        raw((1, 2), raw_input_contents=[bytes(5000)]),
        Code.RESOURCE_EXHAUSTED,
        "larger than max",
        id="too large a message",
    ),
]


async def test_grpc_message_of_many_fields_is_refused_before_it_is_parsed(
    calls: StartCalls,
) -> None:
    """500 000 empty inputs, 2 bytes each, would take 38 bytes of memory per byte."""
    one = await calls(max_message_bytes=1 << 20)
    error = await one.refused(b"\x2a\x00" * 500_000)
    assert error.code() == Code.INVALID_ARGUMENT
    assert "at most 106576 bytes, 4096 fields and 4104 numbers" in error.details()
    assert [*(await one.infer(raw((1, 2)))).raw_output_contents] == [struct.pack("<d", 3)]


@pytest.mark.parametrize(("request_", "code", "words"), BAD)
async def test_grpc_invalid_input_causes_no_batch(
    calls: StartCalls, request_: Any, code: grpc.StatusCode, words: str
) -> None:
    one = await calls()
    error = await one.refused(request_)
    assert error.code() == code
    assert re.search(words, error.details() or "")
    assert one.world.engine.batches == []
    seen = await balanced_metrics(one.world)
    assert seen["headroom_requests_received_total"] == 0
