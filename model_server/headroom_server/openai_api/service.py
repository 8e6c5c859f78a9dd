"""Serves requests for generated text: admission, the cache, and the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from headroom_server.caching.generation_cache import CacheLookup
from headroom_server.connection import Connection, connection_of
from headroom_server.errors import DisconnectedError, RefusedError, RequestError
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.values import GenerationRequest
from headroom_server.openai_api.answer_contexts import AnswerContexts
from headroom_server.openai_api.answers.answer_sender import AnswerSender
from headroom_server.openai_api.answers.cached import forbids_caching, question_of
from headroom_server.openai_api.bodies.parameters import Call
from headroom_server.openai_api.endpoints import MakeForm, Parse
from headroom_server.openai_api.prompts.encoder import EncodedCall, PromptEncoder
from headroom_server.openai_api.request_reader import ReceivedRequest, RequestReader
from headroom_server.protocols.request_options import USUAL, RequestOptions
from headroom_server.runtime.generating.generation_run import GenerationRun
from headroom_server.runtime.generating.generator import Generator
from headroom_server.telemetry.accounting import Outcome
from headroom_server.tracing.current import TRACE
from headroom_server.web.shared_bound import SharedBound

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


class GenerationService:
    """The requests of one generating model."""

    def __init__(
        self,
        generator: Generator,
        text: ModelText,
        *,
        max_body_bytes: int,
        receiving: SharedBound,
        unread: SharedBound,
        unread_timeout_s: float,
        identity: str = "",
    ) -> None:
        """`identity` distinguishes the model's weights from others in a shared cache."""
        self.generator = generator
        self.text = text
        self.max_body_bytes = max_body_bytes
        self.receiving = receiving
        self.unread = unread
        self.unread_timeout_s = unread_timeout_s
        self._identity = identity
        self.prompts = PromptEncoder(generator, text, identity)
        self.reader = RequestReader(generator, self.prompts, receiving, max_body_bytes)
        self._sender = AnswerSender(generator, unread, unread_timeout_s)
        self._contexts = AnswerContexts(generator, text)

    async def serve(
        self, parse: Parse, make_form: MakeForm, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer one request.

        Raises:
            RequestError: before the response has begun.
        """
        generator = self.generator
        arrived_s = generator.clock()
        if not generator.warm:
            generator.begin(arrived_s, USUAL)  # refused and counted
        connection = connection_of(scope)
        try:
            received = await self.reader.read(parse, scope, receive, connection, arrived_s)
        except DisconnectedError:
            return
        fresh = forbids_caching(scope["headers"])
        await self.answer(received, make_form, connection, send, fresh=fresh)

    async def answer(
        self,
        received: ReceivedRequest,
        make_form: MakeForm,
        connection: Connection,
        send: Send,
        *,
        fresh: bool,
    ) -> None:
        """Generate the answer of a valid request; it is cancelled with the caller.

        Raises:
            RequestError: before the response has begun.
        """
        call, options, encoded, arrived_s = received
        run = self.generator.begin(arrived_s, options)
        fresh = fresh or self.generator.cache is None
        try:
            await self._generate(run, call, encoded, make_form, connection, send, fresh=fresh)
        except DisconnectedError:
            pass
        finally:
            connection.on_lost = None
            run.cancel()

    def stream(
        self,
        call: Call,
        options: RequestOptions,
        make_form: MakeForm,
        connection: Connection,
        arrived_s: float,
        on_error: Callable[[RequestError], None],
    ) -> None:
        """Stream the answer to a short request without waiting; nothing is cached.

        Raises:
            RequestError: now; later ones go to `on_error`.
        """
        encoded = self.prompts.encode_short(call)
        run = self.generator.begin(arrived_s, options)
        loop = asyncio.get_running_loop()

        def over(complete: bool) -> None:
            connection.on_lost = None
            if not complete:  # not now: a choice is accounted for after its delivery
                loop.call_soon(run.cancel)

        try:
            self._check_count(run, call, len(encoded.prompts) * call.choices.n)
            self._sender.begin_stream(
                run,
                self._contexts.make(run, call, encoded, make_form),
                connection,
                partial(self._sender.open, connection, _no_send, []),
                on_error,
                over,
                None,
            )
        except BaseException:
            connection.on_lost = None
            run.cancel()
            raise

    async def _generate(
        self,
        run: GenerationRun,
        call: Call,
        encoded: EncodedCall,
        make_form: MakeForm,
        connection: Connection,
        send: Send,
        *,
        fresh: bool,
    ) -> None:
        if fresh:
            self._check_count(run, call, len(encoded.prompts) * call.choices.n)
        context = self._contexts.make(run, call, encoded, make_form)
        lookup = None if fresh else await self._look(call, context.requests)
        if call.choices.stream:
            await self._sender.stream(run, context, connection, send, lookup)
        else:
            await self._sender.collect(run, context, connection, send, lookup)

    def _check_count(self, run: GenerationRun, call: Call, count: int) -> None:
        """Refuse a call that may not wait, before 128 choices are made of it in 8 ms."""
        if count == 1:  # the engine checks it as soon
            return
        options = run.options
        batch_class = call.choices.flexible or options.batch
        try:
            self.generator.engine.check_count(options.tenant, count, batch_class=batch_class)
        except RefusedError as error:
            self.generator.refused(error)
            run.close(Outcome.REFUSED)
            raise

    async def _look(self, call: Call, requests: Sequence[GenerationRequest]) -> CacheLookup | None:
        cache = self.generator.cache
        question = question_of(self._identity, call, requests)
        if cache is None or question is None:
            return None
        lookup = await cache.look(question)
        trace = TRACE.get()
        if trace is not None and lookup.hit is not None:
            trace.source = lookup.hit.source
        return lookup


async def _no_send(message: object) -> None:
    """Lose a message: the client of this connection has left."""
