"""Sends the generated answer of a request: streamed or whole; the cache keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from headroom_server.caching.generation_cache import CacheLookup
from headroom_server.connection import Connection, Headers
from headroom_server.errors import DisconnectedError, RequestError
from headroom_server.openai_api.answers.cached import headers_of
from headroom_server.openai_api.answers.choice_parts import AnswerContext
from headroom_server.openai_api.answers.collecting import CollectedAnswer
from headroom_server.openai_api.answers.streaming import StreamedAnswer
from headroom_server.openai_api.answers.submission import Submission
from headroom_server.openai_api.answers.unread import FEW_PROBABILITIES
from headroom_server.runtime.generating.generation_run import GenerationRun
from headroom_server.runtime.generating.generator import Generator
from headroom_server.web.close_policy import ClosePolicy
from headroom_server.web.inference.response_heads import head_of
from headroom_server.web.inference.response_stream import AsgiStream, ResponseStream
from headroom_server.web.shared_bound import Reservation, SharedBound

if TYPE_CHECKING:
    from starlette.types import Send

EVENT_STREAM: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
STREAM_HEAD = head_of(200, EVENT_STREAM)


class AnswerSender:
    """Sends the engine's deliveries for the requests of a call."""

    def __init__(self, generator: Generator, unread: SharedBound, unread_timeout_s: float) -> None:
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
        lookup: CacheLookup | None,
    ) -> None:
        """Send the whole answer when it is complete; it is cancelled with the caller.

        Raises:
            RequestError: before the response has begun.
        """
        submission = Submission(self._generator, run, context, lookup)
        answer = CollectedAnswer(
            context,
            Reservation(self._unread, connection.client),
            Reservation(self._unread, connection.client),
            submission.refuse,
        )

        def leave() -> None:
            run.cancel()
            if not answer.done.done():
                answer.done.set_exception(DisconnectedError())

        try:
            submission.begin(answer.receive, connection, leave)
            await answer.done
            submission.keep()
            body = await self._rendered(answer)
        finally:
            answer.close()
        close = self._closing.due(connection)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        headers += _cache_headers(lookup)
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
        lookup: CacheLookup | None,
    ) -> None:
        """Stream the answer to its end; it is cancelled with the caller.

        Raises:
            RequestError: before the response has begun.
        """
        started: asyncio.Future[ResponseStream] = asyncio.get_running_loop().create_future()

        def open_stream() -> ResponseStream:
            stream = self.open(connection, send, _cache_headers(lookup))
            if not started.done():
                started.set_result(stream)
            return stream

        def fail(error: RequestError) -> None:
            if not started.done():
                started.set_exception(error)

        answer, submission = self.begin_stream(
            run, context, connection, open_stream, fail, _ignore, lookup
        )
        try:
            stream = await started
            await stream.wait()
        finally:
            answer.gone()
        submission.keep()

    def begin_stream(
        self,
        run: GenerationRun,
        context: AnswerContext,
        connection: Connection,
        open_stream: Callable[[], ResponseStream],
        on_error: Callable[[RequestError], None],
        on_over: Callable[[bool], None],
        lookup: CacheLookup | None,
    ) -> tuple[StreamedAnswer, Submission]:
        """Return a streamed answer without waiting for it.

        `open_stream` begins the response with the first event; `on_error` learns of an error before
        it, and `on_over` whether the answer was complete.

        Raises:
            RequestError: the engine refuses it.
        """
        submission = Submission(self._generator, run, context, lookup)
        answer = StreamedAnswer(
            context,
            open_stream,
            Reservation(self._unread, connection.client),
            Reservation(self._unread, connection.client),
            unread_timeout_s=self._unread_timeout_s,
            on_error=on_error,
            on_over=on_over,
            on_slow=submission.give_up,
            on_full=submission.refuse,
        )

        def leave() -> None:
            answer.gone()
            run.cancel()
            on_error(DisconnectedError())

        submission.begin(answer.receive, connection, leave)
        return answer, submission

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


def _ignore(complete: bool) -> None:
    """Do nothing."""


def _cache_headers(lookup: CacheLookup | None) -> Headers:
    return [] if lookup is None or lookup.hit is None else headers_of(lookup.hit)
