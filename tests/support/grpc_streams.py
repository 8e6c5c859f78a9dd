"""A client of ModelStreamInfer, and servers of it in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from grpc import aio

from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.server import Bounds, GrpcServer, GrpcServices, served_text
from support.generation_front import FrontWorld, ScriptedExecutor, front

PATH = "/inference.GRPCInferenceService/ModelStreamInfer"


@dataclass
class StreamClient:
    """A client of a server in this process."""

    server: GrpcServer
    channel: aio.Channel
    target: str

    def open(self, **options: Any) -> Any:
        """A stream that is written and read by the test; requests may be bytes."""
        return self.channel.stream_stream(
            PATH,
            request_serializer=lambda one: (
                one if isinstance(one, bytes) else one.SerializeToString()
            ),
            response_deserializer=pb.ModelStreamInferResponse.FromString,
        )(**{"timeout": 20} | options)

    async def exchange(self, *requests: Any, **options: Any) -> list[pb.ModelStreamInferResponse]:
        """Send requests on one stream, and return all responses."""
        stream = self.open(**options)
        for request in requests:
            await stream.write(request)
        await stream.done_writing()
        return [response async for response in stream]


@asynccontextmanager
async def streams_of(
    services: GrpcServices,
    *,
    max_message_bytes: int = 4096,
    max_connections: int = 2048,
    **options: Any,
) -> AsyncIterator[StreamClient]:
    bounds = Bounds(
        max_message_bytes=max_message_bytes,
        max_age_s=60,
        age_grace_s=60,
        max_connections=max_connections,
    )
    server = GrpcServer(services, bounds, **options)
    target = f"127.0.0.1:{await server.start('127.0.0.1', 0)}"
    try:
        async with aio.insecure_channel(target) as channel:
            yield StreamClient(server, channel, target)
    finally:
        await server.stop()


@asynccontextmanager
async def text_streams(
    executor: ScriptedExecutor | None = None,
    *,
    max_message_bytes: int = 1 << 16,
    max_connections: int = 2048,
    **options: Any,
) -> AsyncIterator[tuple[FrontWorld, StreamClient]]:
    async with (
        front(executor, **options) as world,
        streams_of(
            served_text(world.app.service),
            max_message_bytes=max_message_bytes,
            max_connections=max_connections,
            receiving=world.app.receiving,
        ) as client,
    ):
        yield world, client


def prompt(text: str | bytes = "abc", **fields: Any) -> pb.ModelInferRequest:
    """A request for text; other fields than `id` are its parameters."""
    request = pb.ModelInferRequest(model_name=fields.pop("model", "m"), id=fields.pop("id", ""))
    tensor = request.inputs.add(name="text_input", datatype="BYTES", shape=(1,))
    tensor.contents.bytes_contents.append(text.encode() if isinstance(text, str) else text)
    for name, value in fields.items():
        kind = {bool: "bool_param", int: "int64_param", str: "string_param", float: "double_param"}
        setattr(request.parameters[name], kind[type(value)], value)
    return request


def text_of(responses: Sequence[pb.ModelStreamInferResponse], identifier: str = "") -> str:
    """The text of one request's responses."""
    return b"".join(
        response.infer_response.outputs[0].contents.bytes_contents[0]
        for response in responses
        if response.infer_response.id == identifier and response.infer_response.outputs
    ).decode()
