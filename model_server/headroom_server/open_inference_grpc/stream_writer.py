"""Writes the answers of a stream, which share it; answers wait while the client does not read."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from headroom_server.errors import DisconnectedError, QueueFullError, RequestError
from headroom_server.web.inference.response_stream import UNSENT_BYTES, nothing

LENGTH_BYTES = 4
"""Before each message of what is written: answers are joined as bytes before they are sent."""


def framed(message: bytes) -> bytes:
    """Return a message with its length."""
    return len(message).to_bytes(LENGTH_BYTES, "big") + message


class StreamWriter:
    """One call's messages, in their order. `fail` is called if the client does not read."""

    def __init__(
        self,
        write: Callable[[bytes], Awaitable[Any]],
        fail: Callable[[RequestError], object],
        *,
        within_s: float,
    ) -> None:
        self.unsent_bytes = 0
        self.listeners: set[AnswerStream] = set()
        self._write = write
        self._fail = fail
        self._within_s = within_s
        self._queue: deque[tuple[bytes, Callable[[int], object]]] = deque()
        self._ready = asyncio.Event()
        self._closed = False
        self._writing: asyncio.Future[Any] | None = None

    @property
    def paused(self) -> bool:
        """Whether the client does not read the written bytes."""
        return self.unsent_bytes > UNSENT_BYTES

    def put(self, message: bytes, sent: Callable[[int], object]) -> None:
        """Write a message; `sent` is called with its size, also if it is lost."""
        if self._closed:
            sent(len(message))
            return
        self._queue.append((message, sent))
        self.unsent_bytes += len(message)
        self._ready.set()

    async def send(self, message: bytes) -> None:
        """Write a message, and return when it is written."""
        done = asyncio.Event()
        self.put(message, lambda _: done.set())
        await done.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        try:
            while True:
                await self._ready.wait()
                self._ready.clear()
                while self._queue:
                    await self._next()
        except TimeoutError:
            self._fail(QueueFullError("answers must be read; the client did not", retry_after_s=1))
        except Exception:  # noqa: BLE001 - whatever gRPC says of a call that is over
            self._fail(DisconnectedError())
        finally:
            self._close()

    async def _next(self) -> None:
        message, sent = self._queue[0]
        self._writing = asyncio.ensure_future(self._write(message))
        if not (await asyncio.wait((self._writing,), timeout=self._within_s))[0]:
            raise TimeoutError
        self._writing.result()
        was_paused = self.paused
        self._queue.popleft()
        self.unsent_bytes -= len(message)
        sent(len(message))
        if was_paused and not self.paused:
            for answer in list(self.listeners):
                answer.on_writable()

    def _close(self) -> None:
        self._closed = True
        lost, self._queue = self._queue, deque()
        self.unsent_bytes = 0
        for message, sent in lost:
            sent(len(message))

    async def settled(self) -> None:
        """Wait for the write that is under way: gRPC takes no status before it has ended.

        It ends when the client reads, leaves, or its deadline passes.
        """
        if self._writing is not None and not self._writing.done():
            await asyncio.wait((self._writing,))
        if self._writing is not None and not self._writing.cancelled():
            self._writing.exception()  # looked at, so that asyncio does not log it

    def give_up(self) -> None:
        """End the call: one of its answers waited for too long."""
        self._fail(QueueFullError("answers must be read; the client did not", retry_after_s=1))


class AnswerStream:
    """One answer of a stream, as its writer sees it: framed messages."""

    def __init__(self, writer: StreamWriter) -> None:
        self.on_writable: Callable[[], None] = nothing
        self.unsent_bytes = 0
        self._writer = writer
        self._complete = False
        self._done = asyncio.Event()
        writer.listeners.add(self)

    @property
    def paused(self) -> bool:
        """Whether the client does not read the written bytes, of any answer."""
        return self._writer.paused

    def write(self, data: bytes) -> None:
        """Write messages."""
        at = 0
        while at < len(data):
            end = at + LENGTH_BYTES + int.from_bytes(data[at : at + LENGTH_BYTES], "big")
            message = data[at + LENGTH_BYTES : end]
            self.unsent_bytes += len(message)
            self._writer.put(message, self._sent)
            at = end

    def end(self, data: bytes = b"") -> None:
        """Write the last messages."""
        self._complete = True
        self.write(data)
        self._sent(0)

    def abort(self) -> None:
        """End the whole call."""
        self._done.set()
        self._writer.give_up()

    async def wait(self) -> None:
        """Return when the answer is written or lost."""
        try:
            await self._done.wait()
        finally:
            self._writer.listeners.discard(self)

    def _sent(self, size: int) -> None:
        self.unsent_bytes -= size
        if self._complete and self.unsent_bytes <= 0:
            self._done.set()
