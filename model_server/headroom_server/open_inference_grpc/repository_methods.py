"""The methods of the model repository extension: list, load and unload models."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf.message import Message

from headroom_server.open_inference_grpc import messages
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.calls import Calls
from headroom_server.runtime.control import Control


def repository_methods(calls: Calls, control: Control) -> dict[str, grpc.RpcMethodHandler]:
    """Return the handlers by the names of their methods."""

    async def index(request: pb.RepositoryIndexRequest, _: Any) -> Message:
        entries = await control.index(ready=request.ready)
        return pb.RepositoryIndexResponse(models=[entry._asdict() for entry in entries])

    async def load(request: pb.RepositoryModelLoadRequest, _: Any) -> Message:
        control.permit()
        messages.check_parameters(request.parameters)
        await control.load(request.model_name)
        return pb.RepositoryModelLoadResponse()

    async def unload(request: pb.RepositoryModelUnloadRequest, _: Any) -> Message:
        control.permit()
        messages.check_parameters(request.parameters, "unload_dependents")
        await control.unload(request.model_name)
        return pb.RepositoryModelUnloadResponse()

    return {
        "RepositoryIndex": calls.unary(pb.RepositoryIndexRequest, index),
        "RepositoryModelLoad": calls.unary(pb.RepositoryModelLoadRequest, load),
        "RepositoryModelUnload": calls.unary(pb.RepositoryModelUnloadRequest, unload),
    }
