"""The fast path of generated text: short requests are served without ASGI.

A stream that neither its encoding nor a cache delays needs no task: the call that receives the
request submits it, and the calls that deliver its tokens write them. Other short requests get a
task, but no ASGI scope.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from headroom_server.connection import Connection, Headers
from headroom_server.errors import DisconnectedError, InvalidRequestError
from headroom_server.openai_api.bodies.parameters import Call
from headroom_server.openai_api.endpoints import Endpoint, endpoint_of
from headroom_server.openai_api.prompts.encoder import SHORT_BODY_BYTES
from headroom_server.openai_api.request_reader import ReceivedRequest
from headroom_server.openai_api.service import GenerationService
from headroom_server.protocols.request_options import RequestOptions
from headroom_server.released_errors import release
from headroom_server.web.close_policy import ClosePolicy
from headroom_server.web.inference.direct import Exchange, Respond
from headroom_server.web.inference.known_heads import Head
from headroom_server.web.inference.response_heads import head_of

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Message

_PLAIN = re.compile(rb"/v[12]/[^%?#\x00-\x20\x7f-\xff]+")
"""A path without escapes, query or fragment."""


@lru_cache(maxsize=64)
def _endpoint(url: bytes) -> Endpoint | None:
    return endpoint_of(url.decode("ascii")) if _PLAIN.fullmatch(url) else None


class DirectGeneration:
    """The fast path of one generating model: serves exchanges."""

    def __init__(
        self,
        service: GenerationService,
        closing: ClosePolicy,
        error_answer: Callable[[Exception, str], Response],
    ) -> None:
        self._service = service
        self._closing = closing
        self._error_answer = error_answer
        self._tasks: set[asyncio.Task[None]] = set()

    def head(self, url: bytes, headers: Headers, *, keep_alive: bool) -> Head | None:
        """Return a POST's head; None if this path cannot serve it."""
        by_name = dict(headers)
        length = by_name.get(b"content-length")
        most = min(SHORT_BODY_BYTES, self._service.max_body_bytes)
        if length is None or len(length) > 10 or int(length) > most or _endpoint(url) is None:
            return None
        return Head(url.decode("ascii"), by_name, int(length), keep_alive)

    def begin(self, head: Head) -> Exchange[Endpoint] | None:
        """Return the exchange of a POST whose head is complete; None if ASGI must serve it."""
        generator, endpoint = self._service.generator, endpoint_of(head.path)
        if endpoint is None or not generator.warm or generator.cache is not None:
            return None
        return Exchange(endpoint, head, generator.clock())

    def serve(self, exchange: Exchange[Endpoint], connection: Connection, respond: Respond) -> None:
        """Serve a complete request."""
        service, loop = self._service, asyncio.get_running_loop()
        fail = partial(self._fail, exchange, connection, respond)
        parse, make_form = exchange.target
        body, exchange.body = exchange.body, b""
        try:
            call, options = service.reader.parsed(parse, body, exchange.head.headers)
            if call.choices.stream and not service.prompts.takes_long(call):
                service.stream(call, options, make_form, connection, exchange.arrived_s, fail)
                return
        except Exception as error:  # noqa: BLE001 - the last resort, which logs it
            # not now: the parser is running, and following requests are answered after this one
            loop.call_soon(fail, error)
            return
        task = loop.create_task(self._answer(exchange, connection, respond, call, options))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(
        self,
        exchange: Exchange[Endpoint],
        connection: Connection,
        respond: Respond,
        call: Call,
        options: RequestOptions,
    ) -> None:
        started: list[Message] = []

        async def send(message: Message) -> None:
            """Write an answer for which the connection had no room at once."""
            if message["type"] == "http.response.start":
                started.append(message)
            else:
                head = head_of(started[0]["status"], started[0]["headers"])
                respond(exchange, head, message["body"], False)

        service, arrived_s = self._service, exchange.arrived_s
        size, tenant = exchange.head.body_bytes, options.tenant
        try:
            encoded = await service.prompts.encode(call, size, connection, tenant, fresh=True)
            received = ReceivedRequest(call, options, encoded, arrived_s)
            await service.answer(received, exchange.target[1], connection, send, fresh=True)
        except Exception as error:  # noqa: BLE001 - the last resort, which logs it
            self._fail(exchange, connection, respond, error)

    def _fail(
        self,
        exchange: Exchange[Endpoint],
        connection: Connection,
        respond: Respond,
        error: Exception,
    ) -> None:
        if exchange.disconnected or exchange.response_started:
            return
        if isinstance(error, DisconnectedError):
            return
        if isinstance(error, InvalidRequestError) and not error.counted:
            self._service.generator.ledger.reject(error.reason)
        answer = self._error_answer(error, exchange.head.path)
        release(error)
        head = head_of(answer.status_code, answer.raw_headers)
        respond(exchange, head, bytes(answer.body), self._closing.due(connection))
