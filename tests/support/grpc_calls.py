"""Calls of the Open Inference Protocol over gRPC, to a server in this process."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from grpc import aio

from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.server import GrpcServer
from support.inside import tells_nothing
from support.server_world import World

Tensor = pb.ModelInferRequest.InferInputTensor


Code = grpc.StatusCode


@dataclass
class Calls:
    """A world, and a client of its gRPC server."""

    world: World
    server: GrpcServer
    target: str
    channel: aio.Channel

    async def call(self, method: str, request: Any, gives: Any, **options: Any) -> Any:
        path = f"/inference.GRPCInferenceService/{method}"
        ask = self.channel.unary_unary(
            path,
            request_serializer=lambda one: (
                one if isinstance(one, bytes) else one.SerializeToString()
            ),
            response_deserializer=gives.FromString,
        )
        return await ask(request, **options)

    async def infer(self, request: Any, **options: Any) -> Any:
        return await self.call("ModelInfer", request, pb.ModelInferResponse, timeout=5, **options)

    async def refused(self, request: Any, **options: Any) -> aio.AioRpcError:
        with pytest.raises(aio.AioRpcError) as caught:
            await self.call(
                "ModelInfer", request, pb.ModelInferResponse, **{"timeout": 5} | options
            )
        tells_nothing(f"{caught.value.details()} {caught.value.trailing_metadata()}")
        return caught.value


StartCalls = Callable[..., Awaitable[Calls]]


def raw(*rows: tuple[float, float], **fields: Any) -> pb.ModelInferRequest:
    numbers = [number for row in rows for number in row]
    return pb.ModelInferRequest(
        **{
            "model_name": "m",
            "inputs": [Tensor(name="x", datatype="FP64", shape=[len(rows), 2])],
            "raw_input_contents": [struct.pack(f"<{len(numbers)}d", *numbers)],
        }
        | fields
    )
