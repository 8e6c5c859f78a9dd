"""The protocol's methods: parse, call the runner, render, map errors to status codes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from headroom_server.connection import Connection
from headroom_server.device.execution import Outputs
from headroom_server.errors import (
    InvalidRequestError,
    RefusedError,
    RequestError,
    TooLargeError,
)
from headroom_server.open_inference_grpc import messages
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.message_reads import MessageReads, client_of
from headroom_server.open_inference_grpc.wire_bounds import (
    MAX_FIELDS,
    NUMBER_BYTES,
    UNCHECKED_BYTES,
    WireCount,
)
from headroom_server.protocols import descriptions
from headroom_server.protocols.open_inference import Inference
from headroom_server.runtime.control import Control
from headroom_server.runtime.registry import Models
from headroom_server.runtime.served_model import ServedModel
from headroom_server.scheduling.request_options import RequestOptions, parse_request_options
from headroom_server.scheduling.retry_headers import RETRY_HEADERS
from headroom_server.web.parsing_turns import ParsingTurns

log = logging.getLogger("headroom_server")

SERVICE = "inference.GRPCInferenceService"

CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    413: grpc.StatusCode.INVALID_ARGUMENT,
    415: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    499: grpc.StatusCode.CANCELLED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
"""The gRPC code for the HTTP status of an error."""

_RETRY_HEADERS = frozenset(name.decode() for name in RETRY_HEADERS)

DEADLINE_SLACK_S = 0.05
"""A call cancelled this shortly before its deadline, or later, is a deadline, not a cancellation:
the client's clock is ahead by the network latency."""

R = TypeVar("R", bound=Message)


class ReceivedCall(NamedTuple):
    """An inference whose message is parsed, and no longer held."""

    served: ServedModel
    inference: Inference
    options: RequestOptions
    arrived_s: float


class Service:
    """Open Inference Protocol v2 for all models; with `control` also the repository extension."""

    def __init__(self, models: Models, reads: MessageReads, control: Control | None = None) -> None:
        self._models = models
        self._reads = reads
        self._turns = ParsingTurns()
        self._control = control
        self._inferences: set[asyncio.Task[Outputs]] = set()

    def handler(self) -> Any:
        """What a gRPC server needs to route calls here."""
        methods = {
            "ServerLive": self._unary(pb.ServerLiveRequest, self.server_live),
            "ServerReady": self._unary(pb.ServerReadyRequest, self.server_ready),
            "ModelReady": self._unary(pb.ModelReadyRequest, self.model_ready),
            "ServerMetadata": self._unary(pb.ServerMetadataRequest, self.server_metadata),
            "ModelMetadata": self._unary(pb.ModelMetadataRequest, self.model_metadata),
            "ModelConfig": self._unary(pb.ModelConfigRequest, self.model_config),
            "ModelInfer": self._handler(self._infer),
        }
        if self._control is not None:
            methods |= self._repository(self._control)
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def server_live(self, _: pb.ServerLiveRequest, __: Any) -> Message:
        """Whether the process can serve at all."""
        return pb.ServerLiveResponse(live=self._models.live)

    async def server_ready(self, _: pb.ServerReadyRequest, __: Any) -> Message:
        """Whether the server is warm and not draining."""
        return pb.ServerReadyResponse(ready=self._models.ready)

    async def model_ready(self, request: pb.ModelReadyRequest, __: Any) -> Message:
        """Whether a model is warm."""
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

    def _repository(self, control: Control) -> dict[str, grpc.RpcMethodHandler]:
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
            "RepositoryIndex": self._unary(pb.RepositoryIndexRequest, index),
            "RepositoryModelLoad": self._unary(pb.RepositoryModelLoadRequest, load),
            "RepositoryModelUnload": self._unary(pb.RepositoryModelUnloadRequest, unload),
        }

    async def _infer(self, client: str, context: Any) -> Message:
        """Serve one request. If the call is cancelled, the request leaves the queue."""
        served, inference, options, arrived_s = await self._received(client, context)
        outputs = await self._outputs(
            context,
            served.runner.infer(
                inference.work, arrived_s=arrived_s, options=options, connection=Connection()
            ),
        )
        return messages.render(served.name, served.version, inference, outputs)

    async def _received(self, client: str, context: Any) -> ReceivedCall:
        """Read and parse a request; its numbers wait without the message."""
        async with self._reads.message(client, context) as raw:
            await self._turns.wait(len(raw), client)
            self._check(raw)
            request = _parsed(pb.ModelInferRequest, raw)
            served = self._models.find(request.model_name, request.model_version or None)
            runner, codecs = served.runner, served.codecs
            arrived_s = runner.clock()
            if codecs is None:
                runner.refuse_unready()
            assert codecs is not None
            try:
                inference = messages.parse(codecs.contract, request)
                options = parse_request_options(
                    _headers(context),
                    runner.limits.classes,
                    deadline_s=_earliest(context.time_remaining(), inference.timeout_s),
                )
            except InvalidRequestError as error:
                served.blame(error)
                raise
            return ReceivedCall(served, inference, options, arrived_s)

    def _check(self, raw: bytes) -> None:
        """Check a large message against what the models take, before it is parsed.

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

    async def _outputs(self, context: Any, inference: Coroutine[Any, Any, Outputs]) -> Outputs:
        left_s = context.time_remaining()
        if left_s is None:
            return await inference
        # gRPC cancels a call at its deadline. Its request is left in the queue to expire, so that
        # it is counted as expired.
        task = asyncio.create_task(inference)
        self._inferences.add(task)
        task.add_done_callback(self._ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if context.time_remaining() > min(DEADLINE_SLACK_S, left_s / 2):
                task.cancel()
            raise

    def _ended(self, task: asyncio.Task[Outputs]) -> None:
        self._inferences.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not log it

    def _unary(
        self, takes: type[R], method: Callable[[R, Any], Awaitable[Message]]
    ) -> grpc.RpcMethodHandler:
        async def answer(client: str, context: Any) -> Message:
            async with self._reads.message(client, context) as raw:
                if len(raw) > UNCHECKED_BYTES:
                    raise TooLargeError(
                        f"the message must have at most {UNCHECKED_BYTES} bytes; got {len(raw)}"
                    )
                request = _parsed(takes, raw)
            return await method(request, context)

        return self._handler(answer)

    def _handler(self, method: Callable[[str, Any], Awaitable[Message]]) -> grpc.RpcMethodHandler:
        """Handle a call with one message each way, which `method` reads when it is its turn."""

        async def answer(_: Any, context: Any) -> bytes:
            client = client_of(context)
            try:
                with self._reads.admitted(client):
                    return (await method(client, context)).SerializeToString()
            except RequestError as error:
                if isinstance(error, InvalidRequestError) and not error.blamed:
                    self._models.ledger.reject(error.reason)
                # its frames hold the message, and this frame holds it: a cycle, until collected
                refused = error.with_traceback(None)
            except Exception:
                log.exception("a call failed")
                refused = RequestError("internal error; see the server's log")
            await context.abort(CODES[refused.status], refused.message, _trailing(refused))
            raise AssertionError("abort raises")

        return grpc.stream_unary_rpc_method_handler(answer)


def _parsed(takes: type[R], raw: bytes) -> R:
    try:
        return takes.FromString(raw)
    except DecodeError as error:
        raise InvalidRequestError(f"the message must be a {takes.__name__}") from error


def _earliest(*limits_s: float | None) -> float | None:
    return min((limit for limit in limits_s if limit is not None), default=None)


def _headers(context: Any) -> dict[bytes, bytes]:
    return {
        name.encode(): value.encode() if isinstance(value, str) else value
        for name, value in context.invocation_metadata()
        if name.startswith("x-") or name in _RETRY_HEADERS
    }


def _trailing(error: RequestError) -> tuple[tuple[str, str], ...]:
    if not isinstance(error, RefusedError):
        return ()
    return (
        ("retry-after", str(error.retry_after_s)),
        ("grpc-retry-pushback-ms", str(1000 * error.retry_after_s)),
    )
