"""Streams answers as server-sent events; holds text back while the client does not read.

What was held back is sent as one event per choice, so that a slow reader costs the size of its
text, and not of an event per token.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from headroom_server.errors import FailedError, QueueFullError, RequestError
from headroom_server.generation.values import Delivery
from headroom_server.openai_api.answers.choice_parts import (
    UNWRITABLE,
    AnswerContext,
    ChoiceParts,
)
from headroom_server.openai_api.answers.encoding import Part
from headroom_server.openai_api.answers.held_parts import HeldParts
from headroom_server.openai_api.answers.stream_events import StreamEvents
from headroom_server.openai_api.answers.unread import FEW_PROBABILITIES, WithheldText
from headroom_server.web.inference.response_stream import ResponseStream, nothing
from headroom_server.web.shared_bound import Reservation


class StreamedAnswer:
    """One request's stream. `open_stream` is called with the first delivery, and not before.

    Until then an error still gets a status of its own: `on_error` is called instead. `on_over` is
    called once, when nothing more will be written, with whether the answer is complete. `on_slow`
    and `on_full` are called before it ends for a client that does not read, and for want of memory.
    """

    def __init__(
        self,
        context: AnswerContext,
        open_stream: Callable[[], ResponseStream],
        unread: Reservation,
        withheld: Reservation,
        *,
        unread_timeout_s: float,
        on_error: Callable[[RequestError], None],
        on_over: Callable[[bool], None],
        on_slow: Callable[[], None],
        on_full: Callable[[QueueFullError], None],
    ) -> None:
        self._context = context
        self._open_stream = open_stream
        self._unread = unread
        self._withheld = WithheldText(withheld, len(context.requests))
        self._unread_timeout_s = unread_timeout_s
        self._on_error = on_error
        self._on_over = on_over
        self._on_slow = on_slow
        self._on_full = on_full
        self._choices = [ChoiceParts(context, index) for index in range(len(context.requests))]
        self._events = StreamEvents(context, self._choices)
        self._held = HeldParts(len(self._choices))
        self._holds = self._ended = False
        self._left = len(self._choices)
        self._stream: ResponseStream | None = None
        self._timer: asyncio.TimerHandle | None = None

    def receive(self, index: int, delivery: Delivery) -> None:
        """Take a delivery of a choice."""
        if self._ended:
            return
        try:
            self._take(index, delivery)
        except QueueFullError as error:
            self._on_full(error)
            self._fail(error)
        except RequestError as error:
            self._fail(error)
        except Exception:
            self._fail(FailedError(UNWRITABLE))
            raise

    def _take(self, index: int, delivery: Delivery) -> None:
        choice = self._choices[index]
        part = choice.push(delivery)
        if choice.withholds:
            self._withheld.count(index, choice.withheld)
        if part is None and not delivery.tokens:
            return
        stream = self._stream or self._begin()
        if part is None:
            return
        self._left -= choice.done
        if self._holds or stream.paused:
            self._hold(stream, index, part)
            return
        data = self._events.part(index, part)
        if self._left:
            stream.write(data)
        else:
            self._end(stream, data)

    def gone(self) -> None:
        """The client has left."""
        self._close()

    def _begin(self) -> ResponseStream:
        self._stream = stream = self._open_stream()
        stream.on_writable = self._release
        return stream

    def _end(self, stream: ResponseStream, data: bytes) -> None:
        data += self._events.ending()
        self._close(complete=True)
        stream.end(data)

    def _fail(self, error: RequestError) -> None:
        """Tell the client that its stream ends without an answer."""
        stream = self._stream
        if stream is None:
            self._close()
            self._on_error(error)
            return
        data = self._taken() + b"".join(
            self._events.part(index, part._replace(tokens=()))  # too many: the text must do
            for index, part in self._held.take(math.inf)
        )
        self._close()
        stream.end(data + self._context.form.failure(error))

    # ---- a client that does not read

    def _hold(self, stream: ResponseStream, index: int, part: Part) -> None:
        size = self._held.add(index, part)
        if not self._holds:
            self._holds = True
            size += stream.unsent_bytes
            self._restart_timer()
        self._count(size)

    def _release(self) -> None:
        """Send held-back events: of many probabilities some, and others have their turn."""
        stream = self._stream
        if not self._holds or self._ended or stream is None or stream.paused:
            return
        self._unread.close()
        data = self._taken()
        if self._held:
            self._restart_timer()
            stream.write(data)
            self._count(self._held.size + stream.unsent_bytes)
            if not stream.paused:
                asyncio.get_running_loop().call_soon(self._release)
            return
        self._holds = False
        self._stop_timer()
        if self._left:
            stream.write(data)
        else:
            self._end(stream, data)

    def _taken(self) -> bytes:
        parts = self._held.take(FEW_PROBABILITIES)
        return b"".join(self._events.part(index, part) for index, part in parts)

    def _count(self, size: int) -> None:
        try:
            self._unread.grow(size)
        except QueueFullError:
            self._give_up()

    def _give_up(self) -> None:
        stream = self._stream
        if self._ended or stream is None:
            return
        self._close()
        self._on_slow()
        stream.abort()

    def _close(self, *, complete: bool = False) -> None:
        if not self._ended:
            self._ended = True
            self._on_over(complete)
        if self._stream is not None:  # a cycle would wait for the garbage collector
            self._stream.on_writable = nothing
            self._stream = None
        self._stop_timer()
        self._unread.close()
        self._withheld.close()

    def _restart_timer(self) -> None:
        self._stop_timer()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._unread_timeout_s, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
