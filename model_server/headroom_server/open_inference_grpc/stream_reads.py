"""Reads the messages of streams, as far as memory allows.

A stream that waits for its next message takes a turn, because its message may be as large as any
other. Streams that have a request wait in one line, and streams that have none in another one: no
answer that takes long delays another stream. In both, when others wait, the stream that has had no
request for the longest time is ended: its client has all its answers, and opens another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from headroom_server.errors import InvalidRequestError, RefusedError, RequestError
from headroom_server.open_inference_grpc.read_turns import ReadTurns
from headroom_server.web.shared_bound import SharedBound

LEAST_IDLE_S = 1.0
"""A stream that has had no request for so long is ended if others wait."""


class OpenStream(Protocol):
    """A stream, as far as its reads are concerned."""

    client: str

    @property
    def idle_since_s(self) -> float | None:
        """Since when it has no request, on the loop's clock; None: it has one."""

    def end(self, error: RequestError) -> None:
        """End it with an error."""


class StreamReads:
    """Reads messages in turns of two lines, each with this many bytes."""

    def __init__(self, most_bytes: int, max_message_bytes: int) -> None:
        self._idle = ReadTurns(SharedBound(most_bytes), max_message_bytes)
        self._busy = ReadTurns(SharedBound(most_bytes), max_message_bytes)
        self._reading: dict[OpenStream, ReadTurns] = {}
        self.leaving = False

    def leave(self) -> None:
        """End the streams that have no request, and the others when they have none."""
        self.leaving = True
        for stream in list(self._reading):
            self.settle(stream)

    def settle(self, stream: OpenStream) -> None:
        """End a stream if the server stops and nothing is to be answered."""
        if self.leaving and stream.idle_since_s is not None:
            stream.end(RefusedError("this replica stops; open another stream", retry_after_s=1))

    @asynccontextmanager
    async def message(self, stream: OpenStream, context: Any) -> AsyncIterator[bytes | None]:
        """Read the next message; its bytes count until the block ends. None: there is none.

        Raises:
            InvalidRequestError: it cannot be read.
        """
        turns = await self._turn(stream)
        self._reading[stream] = turns
        try:
            self.settle(stream)
            raw = await context.read()
            del self._reading[stream]
            if raw is None:
                raise InvalidRequestError("a message must be complete; got a part of one")
            yield raw if isinstance(raw, bytes) else None
        finally:
            self._reading.pop(stream, None)
            turns.give_back(stream.client)

    async def _turn(self, stream: OpenStream) -> ReadTurns:
        while True:
            turns = self._idle if stream.idle_since_s is not None else self._busy
            taking = asyncio.ensure_future(turns.take(stream.client))
            try:
                if await self._taken(taking, turns, stream):
                    return turns
            except asyncio.CancelledError:
                if taking.done() and not taking.cancelled():
                    turns.give_back(stream.client)
                taking.cancel()
                raise
            taking.cancel()

    async def _taken(
        self, taking: asyncio.Future[None], turns: ReadTurns, stream: OpenStream
    ) -> bool:
        """Wait for a turn; return False if the stream waits in the wrong line now."""
        while not (await asyncio.wait((taking,), timeout=LEAST_IDLE_S))[0]:
            if turns is self._busy and stream.idle_since_s is not None:
                return False
            self._end_longest_idle(turns)
        return True

    def _end_longest_idle(self, turns: ReadTurns) -> None:
        now_s = asyncio.get_running_loop().time()
        idle = [
            (since_s, id(stream), stream)
            for stream, held in self._reading.items()
            if held is turns
            and (since_s := stream.idle_since_s) is not None
            and now_s - since_s >= LEAST_IDLE_S
        ]
        if idle:
            _, _, stream = min(idle)
            stream.end(
                RefusedError(
                    "the stream had no request while others waited; open another one",
                    retry_after_s=1,
                )
            )
