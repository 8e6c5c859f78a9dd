"""Answers requests for generated text over gRPC, in parts or whole."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from headroom_server.connection import Connection
from headroom_server.generation.text.model_text import ModelText
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.stream_writer import AnswerStream, StreamWriter
from headroom_server.open_inference_grpc.text_answers import MessageForm
from headroom_server.open_inference_grpc.text_requests import (
    AnswerStyle,
    TextRequest,
)
from headroom_server.openai_api.answers.encoding import AnswerIdentity, Form
from headroom_server.openai_api.bodies.parameters import Call
from headroom_server.openai_api.request_reader import ReceivedRequest
from headroom_server.openai_api.service import GenerationService
from headroom_server.protocols.request_options import RequestOptions


class ReceivedText(NamedTuple):
    """A parsed request, and the options of its metadata."""

    request: TextRequest
    options: RequestOptions
    arrived_s: float
    fresh: bool
    size: int


class TextAnswers:
    """Answers by the service that HTTP has too; it writes to connections of its own kind."""

    def __init__(self, service: GenerationService) -> None:
        self._service = service

    async def parts(self, text: ReceivedText, client: str, writer: StreamWriter) -> None:
        """Write the answer to a stream as it comes, in parts."""
        connection = Connection(client=client)
        stream = AnswerStream(writer)
        connection.stream = lambda _head, _close: stream
        try:
            await self._answer(text, connection)
        finally:
            writer.listeners.discard(stream)

    async def one_part(self, text: ReceivedText, client: str) -> bytes:
        """Return the whole answer as the only message of a request's stream."""
        response = pb.ModelInferResponse.FromString(await self.whole(text, client))
        response.parameters["triton_final_response"].bool_param = True
        return pb.ModelStreamInferResponse(infer_response=response).SerializeToString()

    async def whole(self, text: ReceivedText, client: str) -> bytes:
        """Return the whole answer as a message."""
        connection = Connection(client=client)
        bodies: list[bytes] = []

        def take(_head: bytes, body: bytes, _close: bool) -> bool:
            bodies.append(body)
            return True

        connection.answer = take
        await self._answer(text, connection)
        return bodies[0]

    async def _answer(self, text: ReceivedText, connection: Connection) -> None:
        call, style = text.request.call, text.request.answer
        encoded = await self._service.prompts.encode(
            call, text.size, connection, text.options.tenant, fresh=text.fresh
        )
        received = ReceivedRequest(call, text.options, encoded, text.arrived_s)
        form = partial(_form, style)
        await self._service.answer(received, form, connection, _no_asgi, fresh=text.fresh)


def _form(style: AnswerStyle, call: Call, identity: AnswerIdentity, text: ModelText) -> Form:
    return MessageForm(identity, style)


async def _no_asgi(_: Any) -> None:
    raise AssertionError("answers are written to their connection")
