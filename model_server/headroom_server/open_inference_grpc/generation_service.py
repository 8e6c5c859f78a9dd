"""Generated text over gRPC: one answer as a message, or streams of its parts."""

from __future__ import annotations

from functools import partial
from typing import Any

import grpc
from google.protobuf.message import Message

from headroom_server.errors import TooLargeError, UnknownModelError
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.calls import SERVICE, Calls, earliest, headers_of, parsed
from headroom_server.open_inference_grpc.message_reads import MessageReads
from headroom_server.open_inference_grpc.stream_reads import StreamReads
from headroom_server.open_inference_grpc.stream_writer import StreamWriter
from headroom_server.open_inference_grpc.streamed_service import Serve
from headroom_server.open_inference_grpc.streams import stream_handler
from headroom_server.open_inference_grpc.text_answers import VERSION
from headroom_server.open_inference_grpc.text_requests import (
    parse_text_request,
)
from headroom_server.open_inference_grpc.text_serving import ReceivedText, TextAnswers
from headroom_server.open_inference_grpc.wire_bounds import (
    LARGEST_TEXT_BYTES,
    MAX_FIELDS,
    WireCount,
)
from headroom_server.openai_api.answers.cached import forbids_caching
from headroom_server.openai_api.prompts.bounds import most_body_bytes
from headroom_server.openai_api.service import GenerationService
from headroom_server.protocols import descriptions
from headroom_server.protocols.request_options import USUAL, parse_request_options
from headroom_server.web.shared_bound import SharedBound

EXTENSIONS = ("model_configuration",)


class TextCalls:
    """The protocol's methods for a model that generates."""

    ordered = False

    def __init__(
        self, service: GenerationService, reads: MessageReads, streams: StreamReads, _: SharedBound
    ) -> None:
        self.unread_s = service.unread_timeout_s
        self._service = service
        self._answers = TextAnswers(service)
        self._generator = service.generator
        self._calls = Calls(reads, streams, service.generator.ledger.reject)

    def handler(self) -> Any:
        """Handler by which a gRPC server routes calls here."""
        unary = self._calls.unary
        methods = {
            "ServerLive": unary(pb.ServerLiveRequest, self.server_live),
            "ServerReady": unary(pb.ServerReadyRequest, self.server_ready),
            "ModelReady": unary(pb.ModelReadyRequest, self.model_ready),
            "ServerMetadata": unary(pb.ServerMetadataRequest, self.server_metadata),
            "ModelMetadata": unary(pb.ModelMetadataRequest, self.model_metadata),
            "ModelConfig": unary(pb.ModelConfigRequest, self.model_config),
            "ModelInfer": self._calls.handler(self._infer),
            "ModelStreamInfer": stream_handler(self._calls, self, self._service.unread),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def server_live(self, _: pb.ServerLiveRequest, __: Any) -> Message:
        """Return whether the process can serve at all."""
        return pb.ServerLiveResponse(live=self._generator.live)

    async def server_ready(self, _: pb.ServerReadyRequest, __: Any) -> Message:
        """Return whether the model is warm and not draining."""
        return pb.ServerReadyResponse(ready=self._generator.ready)

    async def model_ready(self, request: pb.ModelReadyRequest, __: Any) -> Message:
        """As ServerReady, for the model's name."""
        self._check_model(request.name, request.version)
        return pb.ModelReadyResponse(ready=self._generator.ready)

    async def server_metadata(self, _: pb.ServerMetadataRequest, __: Any) -> Message:
        """Name, version, extensions."""
        return pb.ServerMetadataResponse(**descriptions.server_metadata(EXTENSIONS))

    async def model_metadata(self, request: pb.ModelMetadataRequest, __: Any) -> Message:
        """The model's inputs and outputs."""
        self._check_model(request.name, request.version)
        name, engine = self._generator.model, self._generator.engine.name
        return pb.ModelMetadataResponse(**descriptions.text_metadata(name, engine))

    async def model_config(self, request: pb.ModelConfigRequest, __: Any) -> Message:
        """The model's configuration in the form of Triton's clients: its answers have parts."""
        self._check_model(request.name, request.version)
        name, engine = self._generator.model, self._generator.engine.name
        config = pb.ModelConfig(**descriptions.text_config(name, engine))
        return pb.ModelConfigResponse(config=config)

    def decode(self, raw: bytes) -> pb.ModelInferRequest:
        """Parse a message that is not larger than any request."""
        generator = self._generator
        if generator.warm:
            most = most_body_bytes(generator.limits, LARGEST_TEXT_BYTES)
            if len(raw) > most or WireCount(raw).too_many:
                raise TooLargeError(
                    f"the message must have at most {most} bytes, as the model's context allows, "
                    f"and {MAX_FIELDS} fields; got {len(raw)} bytes"
                )
        return parsed(pb.ModelInferRequest, raw)

    def accept(
        self, request: pb.ModelInferRequest, context: Any, client: str, writer: StreamWriter
    ) -> Serve:
        """Check a request of a stream, and return the function that serves it."""
        text = self._accepted(request, context, streams=True)
        if text.request.call.choices.stream:
            return partial(self._answers.parts, text, client, writer)
        return partial(self._answers.one_part, text, client)

    async def _infer(self, client: str, context: Any) -> bytes:
        """Answer with one message. If the call is cancelled, the answer is given up."""
        async with self._calls.reads.message(client, context) as raw:
            text = self._accepted(self.decode(raw), context, streams=False)
        return await self._calls.outlasting(context, self._answers.whole(text, client))

    def _accepted(
        self, request: pb.ModelInferRequest, context: Any, *, streams: bool
    ) -> ReceivedText:
        generator = self._generator
        arrived_s = generator.clock()
        self._check_model(request.model_name, request.model_version)
        if not generator.warm:
            generator.begin(arrived_s, USUAL)  # refused and counted
        text = parse_text_request(request, streams=streams)
        options = parse_request_options(
            headers_of(context),
            generator.options.classes,
            deadline_s=earliest(context.time_remaining(), text.timeout_s),
        )
        metadata = [
            (b"cache-control", value.encode())
            for name, value in context.invocation_metadata()
            if name == "cache-control" and isinstance(value, str)
        ]
        return ReceivedText(text, options, arrived_s, forbids_caching(metadata), request.ByteSize())

    def _check_model(self, name: str, version: str) -> None:
        if name != self._generator.model or version not in ("", VERSION):
            raise UnknownModelError(
                f"the model must be {self._generator.model!r}, version {VERSION}, which this "
                f"server serves; got {name!r:.100}, version {version!r:.20}"
            )
