"""Reads a request for generated text: from a body to a valid request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headroom_server.connection import Connection
from headroom_server.errors import (
    InvalidRequestError,
    NotJsonError,
    TooLargeError,
    UnknownModelError,
)
from headroom_server.openai_api.answers.cached import forbids_caching
from headroom_server.openai_api.bodies.body_parts import check_parts
from headroom_server.openai_api.bodies.parameters import Call
from headroom_server.openai_api.endpoints import Parse
from headroom_server.openai_api.prompts.bounds import most_body_bytes
from headroom_server.openai_api.prompts.encoder import EncodedCall, PromptEncoder
from headroom_server.protocols.request_options import (
    BATCH_CLASS,
    RequestOptions,
    parse_request_options,
)
from headroom_server.runtime.generating.generator import Generator
from headroom_server.web.inference.parsing_turns import ParsingTurns
from headroom_server.web.inference.request_body import explain, read_body
from headroom_server.web.shared_bound import Reservation, SharedBound

if TYPE_CHECKING:
    from starlette.types import Receive, Scope


class ReceivedRequest(NamedTuple):
    """A valid request, before admission."""

    call: Call
    options: RequestOptions
    encoded: EncodedCall
    arrived_s: float


class RequestReader:
    """Reads, parses and encodes the requests of one generating model."""

    def __init__(
        self,
        generator: Generator,
        prompts: PromptEncoder,
        receiving: SharedBound,
        max_body_bytes: int,
    ) -> None:
        self._generator = generator
        self._prompts = prompts
        self._receiving = receiving
        self._max_body_bytes = max_body_bytes
        self._turns = ParsingTurns()

    async def read(
        self, parse: Parse, scope: Scope, receive: Receive, connection: Connection, arrived_s: float
    ) -> ReceivedRequest:
        """Return a request that arrives over ASGI.

        Raises:
            DisconnectedError: the client has left.
            InvalidRequestError: invalid input; it is counted.
            RequestError: the request may not be read now.
        """
        reservation = Reservation(self._receiving, connection.client)
        try:
            parts = await self._encoded(parse, scope, receive, reservation, connection)
        except InvalidRequestError as error:
            self._generator.ledger.reject(error.reason)
            error.counted = True
            raise
        finally:
            reservation.close()
        return ReceivedRequest(*parts, arrived_s)

    async def _encoded(
        self,
        parse: Parse,
        scope: Scope,
        receive: Receive,
        reservation: Reservation,
        connection: Connection,
    ) -> tuple[Call, RequestOptions, EncodedCall]:
        headers = dict(scope["headers"])
        body = await self.body(headers, receive, reservation, connection)
        call, options = self.parsed(parse, body, headers)
        fresh = forbids_caching(scope["headers"])
        encoding = self._prompts.encode(call, len(body), connection, options.tenant, fresh=fresh)
        del body  # it waits as a call, without its text
        return call, options, await encoding

    async def body(
        self,
        headers: dict[bytes, bytes],
        receive: Receive,
        reservation: Reservation,
        connection: Connection,
    ) -> bytes:
        """Return a body that is not larger than a prompt for the model's context, in its turn.

        Raises:
            DisconnectedError: the client has left.
            TooLargeError: it has more bytes or values than a prompt needs.
            RequestError: it may not be read now.
        """
        limits = self._generator.limits
        most = most_body_bytes(limits, self._max_body_bytes)
        try:
            body = await read_body(headers, receive, most, reservation)
        except TooLargeError as error:  # its words are those by which clients recognize it
            tokens = limits.context_tokens
            raise TooLargeError(
                f"{error.message}. This model's maximum context length is {tokens} tokens."
            ) from None
        await self._turns.wait(len(body), connection.client)
        check_parts(body, limits.context_tokens)
        return body

    def check_model(self, name: str) -> None:
        """Raise UnknownModelError if this server serves another model."""
        model = self._generator.model
        if name != model:
            raise UnknownModelError(
                f"model must be {model!r}, which this server serves; got {name!r:.100}"
            )

    def parsed(
        self, parse: Parse, body: bytes, headers: dict[bytes, bytes]
    ) -> tuple[Call, RequestOptions]:
        """Return a request; its headers are in lower case.

        Raises:
            InvalidRequestError: invalid input.
        """
        generator = self._generator
        try:
            call = parse(body)
        except NotJsonError as error:
            explain(error, headers)
            raise
        self.check_model(call.model)
        options = parse_request_options(headers, generator.options.classes)
        if call.choices.flexible and not options.slo_class:
            options = options._replace(batch=True, slo_class=BATCH_CLASS)
        return call, options
