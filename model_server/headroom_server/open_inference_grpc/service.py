"""The protocol's methods: parse, call the runner, render, map errors to status codes."""

from __future__ import annotations

from typing import Any, NamedTuple

import grpc
from google.protobuf.message import Message

from headroom_server.connection import Connection
from headroom_server.errors import InvalidRequestError, TooLargeError
from headroom_server.open_inference_grpc import messages
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.calls import (
    SERVICE,
    Calls,
    earliest,
    headers_of,
    parsed,
)
from headroom_server.open_inference_grpc.message_reads import MessageReads
from headroom_server.open_inference_grpc.repository_methods import repository_methods
from headroom_server.open_inference_grpc.stream_reads import StreamReads
from headroom_server.open_inference_grpc.stream_writer import StreamWriter
from headroom_server.open_inference_grpc.streamed_service import Serve
from headroom_server.open_inference_grpc.streams import stream_handler
from headroom_server.open_inference_grpc.wire_bounds import (
    MAX_FIELDS,
    NUMBER_BYTES,
    UNCHECKED_BYTES,
    WireCount,
)
from headroom_server.protocols import descriptions
from headroom_server.protocols.open_inference import Inference
from headroom_server.protocols.request_options import RequestOptions, parse_request_options
from headroom_server.runtime.control import Control
from headroom_server.runtime.registry import Models
from headroom_server.runtime.served_model import ServedModel
from headroom_server.web.inference.parsing_turns import ParsingTurns
from headroom_server.web.shared_bound import SharedBound


class ReceivedCall(NamedTuple):
    """An inference whose message is parsed, and no longer held."""

    served: ServedModel
    inference: Inference
    options: RequestOptions
    arrived_s: float


class Service:
    """Open Inference Protocol v2 for all models; with `control` also the repository extension."""

    ordered = True
    unread_s = 30.0

    def __init__(
        self,
        models: Models,
        reads: MessageReads,
        streams: StreamReads,
        sending: SharedBound,
        control: Control | None = None,
    ) -> None:
        self._models = models
        self._calls = Calls(reads, streams, models.ledger.reject)
        self._sending = sending
        self._turns = ParsingTurns()
        self._control = control

    def handler(self) -> Any:
        """Handler by which a gRPC server routes calls here."""
        methods = {
            "ServerLive": self._calls.unary(pb.ServerLiveRequest, self.server_live),
            "ServerReady": self._calls.unary(pb.ServerReadyRequest, self.server_ready),
            "ModelReady": self._calls.unary(pb.ModelReadyRequest, self.model_ready),
            "ServerMetadata": self._calls.unary(pb.ServerMetadataRequest, self.server_metadata),
            "ModelMetadata": self._calls.unary(pb.ModelMetadataRequest, self.model_metadata),
            "ModelConfig": self._calls.unary(pb.ModelConfigRequest, self.model_config),
            "ModelInfer": self._calls.handler(self._infer),
            "ModelStreamInfer": stream_handler(self._calls, self, self._sending),
        }
        if self._control is not None:
            methods |= repository_methods(self._calls, self._control)
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def server_live(self, _: pb.ServerLiveRequest, __: Any) -> Message:
        """Return whether the process can serve at all."""
        return pb.ServerLiveResponse(live=self._models.live)

    async def server_ready(self, _: pb.ServerReadyRequest, __: Any) -> Message:
        """Return whether the server is warm and not draining."""
        return pb.ServerReadyResponse(ready=self._models.ready)

    async def model_ready(self, request: pb.ModelReadyRequest, __: Any) -> Message:
        """Return whether a model is warm."""
        served = self._models.find(request.name, request.version or None)
        return pb.ModelReadyResponse(ready=served.runner.ready)

    async def server_metadata(self, _: pb.ServerMetadataRequest, __: Any) -> Message:
        """Name, version, extensions."""
        return pb.ServerMetadataResponse(**descriptions.server_metadata())

    async def model_metadata(self, request: pb.ModelMetadataRequest, __: Any) -> Message:
        """A model's inputs and outputs."""
        one = self._models.find(request.name, request.version or None)
        engine, signature = one.runner.engine.name, one.signature
        metadata_fields = descriptions.model_metadata(one.name, one.version, engine, signature)
        return pb.ModelMetadataResponse(**metadata_fields)

    async def model_config(self, request: pb.ModelConfigRequest, __: Any) -> Message:
        """A model's configuration in the form of Triton's clients."""
        one = self._models.find(request.name, request.version or None)
        engine, size = one.runner.engine.name, one.runner.limits.max_batch_size
        metadata_fields = descriptions.model_config(one.name, engine, one.signature, size)
        return pb.ModelConfigResponse(config=pb.ModelConfig(**metadata_fields))

    def decode(self, raw: bytes) -> pb.ModelInferRequest:
        """Parse a message of a stream, if it is not larger than any request."""
        self._check(raw)
        return parsed(pb.ModelInferRequest, raw)

    def accept(
        self, request: pb.ModelInferRequest, context: Any, client: str, writer: StreamWriter
    ) -> Serve:
        """Check a request of a stream, and return the function that serves it."""
        received = self._accepted(request, context)

        async def serve() -> bytes:
            answer = await self._served(received)
            answer.parameters["triton_final_response"].bool_param = True
            return pb.ModelStreamInferResponse(infer_response=answer).SerializeToString()

        return serve

    async def _infer(self, client: str, context: Any) -> Message:
        """Serve one request. If the call is cancelled, the request leaves the queue."""
        async with self._calls.reads.message(client, context) as raw:
            await self._turns.wait(len(raw), client)
            received = self._accepted(self.decode(raw), context)
        return await self._calls.outlasting(context, self._served(received))

    async def _served(self, received: ReceivedCall) -> pb.ModelInferResponse:
        served, inference, options, arrived_s = received
        outputs = await served.runner.infer(
            inference.work, arrived_s=arrived_s, options=options, connection=Connection()
        )
        return messages.render(served.name, served.version, inference, outputs)

    def _accepted(self, request: pb.ModelInferRequest, context: Any) -> ReceivedCall:
        """Parse a request; its numbers wait without the message."""
        served = self._models.find(request.model_name, request.model_version or None)
        runner, codecs = served.runner, served.codecs
        arrived_s = runner.clock()
        if codecs is None:
            runner.refuse_unready()
        assert codecs is not None
        try:
            inference = messages.parse(codecs.contract, request)
            options = parse_request_options(
                headers_of(context),
                runner.limits.classes,
                deadline_s=earliest(context.time_remaining(), inference.timeout_s),
            )
        except InvalidRequestError as error:
            served.count_invalid(error)
            raise
        return ReceivedCall(served, inference, options, arrived_s)

    def _check(self, raw: bytes) -> None:
        """Check a large message against the bounds of the models, before it is parsed.

        Raises:
            TooLargeError: it has more bytes, fields or numbers.
        """
        if len(raw) <= UNCHECKED_BYTES:
            return
        loaded = [one.codecs.bounds for one in self._models.all() if one.codecs is not None]
        values = max((one.max_values for one in loaded), default=0)
        strings = any(one.max_bytes is None for one in loaded)
        count = WireCount(raw, MAX_FIELDS + values * strings)
        most_bytes = UNCHECKED_BYTES + NUMBER_BYTES * values
        if count.too_many or count.numbers > values or (len(raw) > most_bytes and not strings):
            raise TooLargeError(
                f"the message must have at most {most_bytes} bytes, {count.max_fields} fields and "
                f"{values} numbers, those of the largest batch; got more"
            )
