"""ModelStreamInfer: requests of one call are served at the same time, within bounds.

A request that fails is answered with `error_message`, as Triton does, and the stream goes on. What
concerns all of them (a message that is none, a client that does not read) ends the call.
"""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import grpc

from headroom_server.errors import QueueFullError, RequestError
from headroom_server.open_inference_grpc.calls import Calls
from headroom_server.open_inference_grpc.failures import failure
from headroom_server.open_inference_grpc.stream_writer import StreamWriter
from headroom_server.open_inference_grpc.streamed_service import Serve, StreamedService
from headroom_server.protocols.open_inference import MAX_ID_CHARACTERS
from headroom_server.tracing.current import TRACE
from headroom_server.web.inference.parsing_turns import ParsingTurns
from headroom_server.web.shared_bound import Reservation, SharedBound

MAX_REQUESTS = 32
"""Requests of one stream that are not answered yet; the next one is not read before."""


def stream_handler(calls: Calls, service: StreamedService, sending: SharedBound) -> Any:
    """Return the handler of ModelStreamInfer; `sending` bounds answers that are not read."""
    turns = ParsingTurns()

    async def serve(client: str, context: Any) -> None:
        await Stream(calls, service, turns, sending, client, context).run()

    async def answer(_: Any, context: Any) -> None:
        await calls.guarded(serve, context)

    return grpc.stream_stream_rpc_method_handler(answer)


class Stream:
    """One call."""

    def __init__(
        self,
        calls: Calls,
        service: StreamedService,
        turns: ParsingTurns,
        sending: SharedBound,
        client: str,
        context: Any,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.client = client
        self.idle_since_s: float | None = loop.time()
        self._calls = calls
        self._service = service
        self._turns = turns
        self._sending = sending
        self._context = context
        self._loop = loop
        self._writer = StreamWriter(context.write, self.end, within_s=service.unread_s)
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._room = asyncio.Event()
        self._complete = False
        self._over: asyncio.Future[None] = loop.create_future()

    def end(self, error: RequestError) -> None:
        """End the call with an error."""
        if not self._over.done():
            self._over.set_exception(error)

    async def run(self) -> None:
        """Serve the call until its client has sent everything, and has every answer.

        Raises:
            RequestError: it cannot go on.
        """
        left_s = self._context.time_remaining()
        serving = asyncio.create_task(self._serve_all())
        writing = asyncio.create_task(self._writer.run())
        serving.add_done_callback(self._served)
        try:
            await self._over
        finally:
            self._calls.abandon(self._context, left_s, tuple(self._tasks))
            for task in (serving, writing):
                task.cancel()
            await asyncio.gather(serving, writing, return_exceptions=True)
            await self._writer.settled()

    def _served(self, serving: asyncio.Task[None]) -> None:
        if self._over.done() or serving.cancelled():
            return
        error = serving.exception()
        if error is None:
            self._over.set_result(None)
        else:
            self._over.set_exception(error)

    async def _serve_all(self) -> None:
        first = True
        while True:
            await self._has_room()
            async with self._calls.streams.message(self, self._context) as raw:
                if raw is None:
                    break
                await self._begin(raw, first=first)
            first = False
        self._complete = True
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def _has_room(self) -> None:
        """Wait while too many are unanswered, or the client reads no answers."""
        while len(self._tasks) >= MAX_REQUESTS or (self._writer.paused and self._tasks):
            self._room.clear()
            await self._room.wait()

    async def _begin(self, raw: bytes, *, first: bool) -> None:
        await self._turns.wait(len(raw), self.client)
        request = self._service.decode(raw)
        current = contextvars.copy_context()
        if not first:
            current.run(TRACE.set, None)  # the call's span has its first request
        serving: Serve | None = None
        try:
            serving = self._service.accept(request, self._context, self.client, self._writer)
            failed = b""
        except Exception as error:  # noqa: BLE001 - logged if it is not the client's
            failed = failure(request.model_name, request.id, self._calls.refused(error))
        before = next(reversed(self._tasks), None) if self._service.ordered else None
        names = request.model_name[:MAX_ID_CHARACTERS], request.id[:MAX_ID_CHARACTERS]
        one = self._one(*names, serving, failed, before)
        task = self._loop.create_task(one, context=current)
        self.idle_since_s = None
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    async def _one(
        self,
        model: str,
        identifier: str,
        serving: Serve | None,
        failed: bytes,
        before: asyncio.Task[None] | None,
    ) -> None:
        answer: bytes | None = failed
        if serving is not None:
            try:
                answer = await serving()
            except Exception as error:  # noqa: BLE001 - logged if it is not the client's
                answer = failure(model, identifier, self._calls.refused(error))
        if before is not None and not before.done():
            await asyncio.wait((before,))
        if answer is not None:
            await self._send(model, identifier, answer)

    async def _send(self, model: str, identifier: str, answer: bytes) -> None:
        waits = Reservation(self._sending, self.client)
        try:
            waits.grow(len(answer))
        except QueueFullError:
            error = QueueFullError("answers that are not read are too large", retry_after_s=1)
            answer = failure(model, identifier, error)
        try:
            await self._writer.send(answer)
        finally:
            waits.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        self._room.set()
        if not self._tasks:
            self.idle_since_s = self._loop.time()
            if not self._complete:
                self._calls.streams.settle(self)
