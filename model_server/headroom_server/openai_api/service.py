"""Serves requests for generated text: from a body to the answer, streamed or whole."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from headroom_server.caching.generation_cache import Looked
from headroom_server.connection import Connection, Headers, connection_of
from headroom_server.errors import (
    DisconnectedError,
    InvalidRequestError,
    NotJsonError,
    QueueFullError,
    RefusedError,
    RequestError,
    UnknownModelError,
)
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.values import Delivery, GenerationRequest
from headroom_server.openai_api.cached import (
    Recording,
    forbids_caching,
    headers_of,
    question_of,
    replay,
)
from headroom_server.openai_api.collecting import (
    AnswerContext,
    CollectedAnswer,
)
from headroom_server.openai_api.encoding import Head
from headroom_server.openai_api.endpoints import Call, MakeForm, Parse
from headroom_server.openai_api.parameters import ChatCall
from headroom_server.openai_api.parsing import check_parts, explain
from headroom_server.openai_api.prompt_encoder import PromptEncoder
from headroom_server.openai_api.prompts import (
    EncodedCall,
    build_requests,
    echoes,
    encode_call,
    most_body_bytes,
)
from headroom_server.openai_api.streaming import StreamedAnswer
from headroom_server.openai_api.unread import FEW_PROBABILITIES
from headroom_server.runtime.generation_run import GenerationRun
from headroom_server.runtime.generator import Generator
from headroom_server.scheduling.request_options import (
    BATCH_CLASS,
    USUAL,
    RequestOptions,
    parse_request_options,
)
from headroom_server.telemetry.accounting import Outcome
from headroom_server.tracing.current import TRACE, Asked
from headroom_server.web.close_policy import ClosePolicy
from headroom_server.web.inference import head_of, read_body
from headroom_server.web.parsing_turns import ParsingTurns
from headroom_server.web.receiving import Receipt, Shares
from headroom_server.web.response_stream import AsgiStream, ResponseStream

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

EVENT_STREAM: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
STREAM_HEAD = head_of(200, EVENT_STREAM)


class Accepted(NamedTuple):
    """A valid request, before admission."""

    call: Call
    options: RequestOptions
    encoded: EncodedCall
    arrived_s: float


class GenerationService:
    """The requests of one generating model."""

    def __init__(
        self,
        generator: Generator,
        text: ModelText,
        *,
        max_body_bytes: int,
        receiving: Shares,
        unread: Shares,
        unread_timeout_s: float,
        identity: str = "",
    ) -> None:
        """`identity` distinguishes the model's weights from others in a shared cache."""
        self.generator = generator
        self.text = text
        self.max_body_bytes = max_body_bytes
        self._receiving = receiving
        self.unread = unread
        self.unread_timeout_s = unread_timeout_s
        self._identity = identity
        self._closing = ClosePolicy(generator)
        self._turns = ParsingTurns()
        self.prompts = PromptEncoder(generator, text, identity)
        self._renderer = ThreadPoolExecutor(1, "renderer")
        # unique, not secret: a system call per request would give up the interpreter's lock
        self._ids, self._answers = secrets.token_hex(12), itertools.count()

    @property
    def unread_bytes(self) -> int:
        """Bytes of answers that their clients have not read, or cannot read yet."""
        return self.unread.held

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
        receipt = Receipt(self._receiving, connection.client)
        try:
            call, options, encoded = await self._read(parse, scope, receive, receipt, connection)
        except DisconnectedError:
            return
        except InvalidRequestError as error:
            generator.ledger.reject(error.reason)
            error.blamed = True
            raise
        finally:
            receipt.close()
        fresh = forbids_caching(scope["headers"])
        accepted = Accepted(call, options, encoded, arrived_s)
        await self.answer(accepted, make_form, connection, send, fresh=fresh)

    async def answer(
        self,
        accepted: Accepted,
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
        call, options, encoded, arrived_s = accepted
        run = self.generator.begin(arrived_s, options)
        fresh = fresh or self.generator.cache is None
        try:
            await self._generate(run, call, encoded, make_form, connection, send, fresh=fresh)
        except DisconnectedError:
            pass
        finally:
            connection.on_lost = None
            run.cancel()

    async def _read(
        self,
        parse: Parse,
        scope: Scope,
        receive: Receive,
        receipt: Receipt,
        connection: Connection,
    ) -> tuple[Call, RequestOptions, EncodedCall]:
        generator = self.generator
        headers, limits = dict(scope["headers"]), generator.limits
        most = most_body_bytes(limits, self.max_body_bytes)
        body = await read_body(headers, receive, most, receipt)
        await self._turns.wait(len(body), connection.client)
        check_parts(body, limits.context_tokens)
        call, options = self.parsed(parse, body, headers)
        fresh = forbids_caching(scope["headers"])
        encoding = self.prompts.encode(call, len(body), connection, options.tenant, fresh=fresh)
        del body  # it waits as a call, without its text
        return call, options, await encoding

    def parsed(
        self, parse: Parse, body: bytes, headers: dict[bytes, bytes]
    ) -> tuple[Call, RequestOptions]:
        """Return a request; its headers are in lower case.

        Raises:
            InvalidRequestError: invalid input.
        """
        generator = self.generator
        try:
            call = parse(body)
        except NotJsonError as error:
            explain(error, headers)
            raise
        if call.model != generator.model:
            raise UnknownModelError(
                f"model must be {generator.model!r}, which this server serves; "
                f"got {call.model!r:.100}"
            )
        options = parse_request_options(headers, generator.options.classes)
        if call.choices.flexible and not options.slo_class:
            options = options._replace(batch=True, slo_class=BATCH_CLASS)
        return call, options

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
        encoded = encode_call(call, self.text, self.generator.limits)
        run = self.generator.begin(arrived_s, options)
        loop = asyncio.get_running_loop()

        def over(complete: bool) -> None:
            connection.on_lost = None
            if not complete:  # not now: a choice is accounted for after its delivery
                loop.call_soon(run.cancel)

        try:
            self._check_count(run, call, len(encoded.prompts) * call.choices.n)
            self._submit_stream(
                run,
                self._context(run, call, encoded, make_form),
                connection,
                partial(self._open, connection, _no_send, []),
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
        context = self._context(run, call, encoded, make_form)
        looked = None if fresh else await self._look(call, context.requests)
        if call.choices.stream:
            await self._stream(run, context, connection, send, looked)
        else:
            await self._collect(run, context, connection, send, looked)

    def _context(
        self, run: GenerationRun, call: Call, encoded: EncodedCall, make_form: MakeForm
    ) -> AnswerContext:
        generator, text = self.generator, self.text
        requests = build_requests(
            call,
            encoded,
            text,
            generator.limits,
            run.options,
            arrived_s=run.arrived_s,
            key=generator.key,
        )
        chat = isinstance(call, ChatCall)
        if run.trace is not None:
            choices, operation = call.choices, "chat" if chat else "text_completion"
            run.trace.asked = Asked(operation, choices.n, choices.max_tokens, choices.stream)
        prefix = "chatcmpl-" if chat else "cmpl-"
        head = Head(prefix + self._new_id(), int(time.time()), generator.model)
        form = make_form(call, head, text)
        return AnswerContext(call, text, form, requests, echoes(call, encoded, text), run.stop)

    def _check_count(self, run: GenerationRun, call: Call, count: int) -> None:
        """Refuse what may not wait before 128 choices are made of it: 8 ms of the event loop."""
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

    async def _look(self, call: Call, requests: Sequence[GenerationRequest]) -> Looked | None:
        cache = self.generator.cache
        question = question_of(self._identity, call, requests)
        if cache is None or question is None:
            return None
        looked = await cache.look(question)
        trace = TRACE.get()
        if trace is not None and looked.hit is not None:
            trace.source = looked.hit.source
        return looked

    def _new_id(self) -> str:
        return f"{self._ids}{next(self._answers):08x}"

    async def _collect(
        self,
        run: GenerationRun,
        context: AnswerContext,
        connection: Connection,
        send: Send,
        looked: Looked | None,
    ) -> None:
        answer = CollectedAnswer(
            context,
            Receipt(self.unread, connection.client),
            Receipt(self.unread, connection.client),
        )

        def leave() -> None:
            run.cancel()
            if not answer.done.done():
                answer.done.set_exception(DisconnectedError())

        try:
            recording = self._submit(run, context, answer.receive, connection, leave, looked)
            try:
                await answer.done
            except QueueFullError as error:
                self._refuse(run, error)
                raise
            _keep(run, recording, looked)
            body = await self._rendered(answer)
        finally:
            answer.close()
        close = self._closing.due(connection)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        headers += _cache_headers(looked)
        if connection.answer is not None and connection.answer(head_of(200, headers), body, close):
            return
        if close:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _rendered(self, answer: CollectedAnswer) -> bytes:
        if answer.probabilities <= FEW_PROBABILITIES:
            return answer.body()
        return await asyncio.get_running_loop().run_in_executor(self._renderer, answer.body)

    async def _stream(
        self,
        run: GenerationRun,
        context: AnswerContext,
        connection: Connection,
        send: Send,
        looked: Looked | None,
    ) -> None:
        started: asyncio.Future[ResponseStream] = asyncio.get_running_loop().create_future()

        def open_stream() -> ResponseStream:
            stream = self._open(connection, send, _cache_headers(looked))
            if not started.done():
                started.set_result(stream)
            return stream

        def fail(error: RequestError) -> None:
            if not started.done():
                started.set_exception(error)

        answer, recording = self._submit_stream(
            run, context, connection, open_stream, fail, _nothing, looked
        )
        try:
            stream = await started
            await stream.wait()
        finally:
            answer.gone()
        _keep(run, recording, looked)

    def _submit_stream(
        self,
        run: GenerationRun,
        context: AnswerContext,
        connection: Connection,
        open_stream: Callable[[], ResponseStream],
        on_error: Callable[[RequestError], None],
        on_over: Callable[[bool], None],
        looked: Looked | None,
    ) -> tuple[StreamedAnswer, Recording | None]:
        answer = StreamedAnswer(
            context,
            open_stream,
            Receipt(self.unread, connection.client),
            Receipt(self.unread, connection.client),
            unread_timeout_s=self.unread_timeout_s,
            on_error=on_error,
            on_over=on_over,
            on_slow=partial(self._give_up, run),
            on_full=partial(self._refuse, run),
        )

        def leave() -> None:
            answer.gone()
            run.cancel()
            on_error(DisconnectedError())

        recording = self._submit(run, context, answer.receive, connection, leave, looked)
        return answer, recording

    def _submit(
        self,
        run: GenerationRun,
        context: AnswerContext,
        receive: Callable[[int, Delivery], None],
        connection: Connection,
        leave: Callable[[], None],
        looked: Looked | None,
    ) -> Recording | None:
        if connection.gone:
            raise DisconnectedError
        connection.on_lost = leave
        recording = None
        if looked is not None:
            if looked.hit is not None:
                replay(looked.hit, context.requests, receive)
                run.close(Outcome.OK)
                return None
            recording = Recording(receive, len(context.requests))
            receive = recording.receive
        delivers = [partial(receive, index) for index in range(len(context.requests))]
        try:
            run.submit(context.requests, delivers)
        except RefusedError as error:
            self.generator.refused(error)
            run.close(Outcome.REFUSED)
            raise
        except BaseException:
            run.close(Outcome.FAILED)
            raise
        return recording

    def _open(self, connection: Connection, send: Send, more: Headers) -> ResponseStream:
        close = self._closing.due(connection)
        headers = [*EVENT_STREAM, *more] if more else EVENT_STREAM
        if connection.stream is not None:
            head = head_of(200, headers) if more else STREAM_HEAD
            stream: ResponseStream = connection.stream(head, close)
            return stream
        headers = [*headers, (b"connection", b"close")] if close else headers
        return AsgiStream(send, headers)

    def _refuse(self, run: GenerationRun, error: QueueFullError) -> None:
        self.generator.refused(error)
        run.cancel(Outcome.REFUSED)

    def _give_up(self, run: GenerationRun) -> None:
        self.generator.generation.slow_readers += 1
        run.cancel()


def _nothing(complete: bool) -> None:
    """Do nothing."""


async def _no_send(message: object) -> None:
    """Lose a message: the client of this connection has left."""


def _cache_headers(looked: Looked | None) -> Headers:
    return [] if looked is None or looked.hit is None else headers_of(looked.hit)


def _keep(run: GenerationRun, recording: Recording | None, looked: Looked | None) -> None:
    if recording is not None and looked is not None and run.outcome is Outcome.OK:
        looked.keep(recording.answer)
