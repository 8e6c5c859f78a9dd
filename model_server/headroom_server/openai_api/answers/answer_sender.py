"""Sends the generated answer of a request: streamed or whole; the cache keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from headroom_server.caching.generation_cache import Looked
from headroom_server.connection import Connection, Headers
from headroom_server.errors import DisconnectedError, QueueFullError, RefusedError, RequestError
from headroom_server.generation.values import Delivery
from headroom_server.openai_api.answers.cached import Recording, headers_of, replay
from headroom_server.openai_api.answers.choice_parts import AnswerContext
from headroom_server.openai_api.answers.collecting import CollectedAnswer
from headroom_server.openai_api.answers.streaming import StreamedAnswer
from headroom_server.openai_api.answers.unread import FEW_PROBABILITIES
from headroom_server.runtime.generation_run import GenerationRun
from headroom_server.runtime.generator import Generator
from headroom_server.telemetry.accounting import Outcome
from headroom_server.web.close_policy import ClosePolicy
from headroom_server.web.receiving import Receipt, Shares
from headroom_server.web.response_heads import head_of
from headroom_server.web.response_stream import AsgiStream, ResponseStream

if TYPE_CHECKING:
    from starlette.types import Send

EVENT_STREAM: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
STREAM_HEAD = head_of(200, EVENT_STREAM)


class AnswerSender:
    """Submits the requests of a call to the engine and sends what it delivers."""

    def __init__(self, generator: Generator, unread: Shares, unread_timeout_s: float) -> None:
        """`unread` bounds the bytes of answers that clients have not read."""
        self._generator = generator
        self._unread = unread
        self._unread_timeout_s = unread_timeout_s
        self._closing = ClosePolicy(generator)
        self._renderer = ThreadPoolExecutor(1, "renderer")

    async def collect(
        self,
        run: GenerationRun,
        context: AnswerContext,
        connection: Connection,
        send: Send,
        looked: Looked | None,
    ) -> None:
        """Send the whole answer when it is complete; it is cancelled with the caller.

        Raises:
            RequestError: before the response has begun.
        """
        answer = CollectedAnswer(
            context,
            Receipt(self._unread, connection.client),
            Receipt(self._unread, connection.client),
            partial(self._refuse, run),
        )

        def leave() -> None:
            run.cancel()
            if not answer.done.done():
                answer.done.set_exception(DisconnectedError())

        try:
            recording = self._submit(run, context, answer.receive, connection, leave, looked)
            await answer.done
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

    async def stream(
        self,
        run: GenerationRun,
        context: AnswerContext,
        connection: Connection,
        send: Send,
        looked: Looked | None,
    ) -> None:
        """Stream the answer to its end; it is cancelled with the caller.

        Raises:
            RequestError: before the response has begun.
        """
        started: asyncio.Future[ResponseStream] = asyncio.get_running_loop().create_future()

        def open_stream() -> ResponseStream:
            stream = self.open(connection, send, _cache_headers(looked))
            if not started.done():
                started.set_result(stream)
            return stream

        def fail(error: RequestError) -> None:
            if not started.done():
                started.set_exception(error)

        answer, recording = self.begin_stream(
            run, context, connection, open_stream, fail, _ignore, looked
        )
        try:
            stream = await started
            await stream.wait()
        finally:
            answer.gone()
        _keep(run, recording, looked)

    def begin_stream(
        self,
        run: GenerationRun,
        context: AnswerContext,
        connection: Connection,
        open_stream: Callable[[], ResponseStream],
        on_error: Callable[[RequestError], None],
        on_over: Callable[[bool], None],
        looked: Looked | None,
    ) -> tuple[StreamedAnswer, Recording | None]:
        """Return a streamed answer without waiting for it.

        `open_stream` begins the response with the first event; `on_error` hears of an error before
        it, and `on_over` whether the answer was complete.

        Raises:
            RequestError: the engine refuses it.
        """
        answer = StreamedAnswer(
            context,
            open_stream,
            Receipt(self._unread, connection.client),
            Receipt(self._unread, connection.client),
            unread_timeout_s=self._unread_timeout_s,
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
            self._generator.refused(error)
            run.close(Outcome.REFUSED)
            raise
        except BaseException:
            run.close(Outcome.FAILED)
            raise
        return recording

    def open(self, connection: Connection, send: Send, more: Headers) -> ResponseStream:
        """Begin the response of a stream, with `more` headers."""
        close = self._closing.due(connection)
        headers = [*EVENT_STREAM, *more] if more else EVENT_STREAM
        if connection.stream is not None:
            head = head_of(200, headers) if more else STREAM_HEAD
            stream: ResponseStream = connection.stream(head, close)
            return stream
        headers = [*headers, (b"connection", b"close")] if close else headers
        return AsgiStream(send, headers)

    def _refuse(self, run: GenerationRun, error: QueueFullError) -> None:
        self._generator.refused(error)
        run.cancel(Outcome.REFUSED)

    def _give_up(self, run: GenerationRun) -> None:
        self._generator.generation.slow_readers += 1
        run.cancel()


def _ignore(complete: bool) -> None:
    """Do nothing."""


def _cache_headers(looked: Looked | None) -> Headers:
    return [] if looked is None or looked.hit is None else headers_of(looked.hit)


def _keep(run: GenerationRun, recording: Recording | None, looked: Looked | None) -> None:
    if recording is not None and looked is not None and run.outcome is Outcome.OK:
        looked.keep(recording.answer)
