"""A call's messages, read once and replayed to the next replica until one starts to answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext

IDLE_S = 5.0
"""Time without a next message after which a stream may have to end for others."""


class IdleStreamError(Exception):
    """The stream was idle while others waited for their turn."""


class ReplayableStream:
    """The messages of a call; none is read before an attempt asks for it."""

    def __init__(
        self,
        said: AsyncIterator[bytes],
        keep: Callable[[int], bool],
        turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
        others_wait: Callable[[], bool] = lambda: False,
    ) -> None:
        """`keep` says whether this many more bytes may be kept for another attempt.

        A message is read in a `turn`, which lasts until the next one is asked for, or there is
        none. A stream that is idle in its turn ends as soon as `others_wait` for theirs.
        """
        self._turn = turn
        self._others_wait = others_wait
        self._turns = AsyncExitStack()
        self._said = aiter(said)
        self._keep = keep
        self._kept: list[bytes] = []
        self._dropped = 0
        """Number of messages at the start that were discarded."""
        self._reading: asyncio.Task[None] | None = None
        self._ended = False
        self.repeatable = True
        """Whether all messages so far can be replayed."""
        self.ended_idle = False
        """Whether it was ended because it was idle."""

    async def replay(self) -> AsyncIterator[bytes]:
        """Yield all messages from the start; the previous attempt must have ended."""
        number = 0
        while True:
            while number >= self._dropped + len(self._kept):
                if self._ended:
                    return
                await self._more()
            message = self._kept[number - self._dropped]
            number += 1
            if not self.repeatable:
                del self._kept[: number - self._dropped]
                self._dropped = number
            yield message

    def begun(self) -> None:
        """Stop keeping messages: a replica has started to answer."""
        self.repeatable = False

    async def end(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._turns.aclose()
        if isinstance(self._said, AsyncGenerator):
            await self._said.aclose()

    async def _more(self) -> None:
        """Read one more message; a read that outlives its attempt serves the next one."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        await self._turns.aclose()
        await self._turns.enter_async_context(self._turn())
        message = await self._next()
        if message is None:
            self._ended = True
            await self._turns.aclose()
        else:
            self._kept.append(message)
            if self.repeatable and not self._keep(len(message)):
                self.repeatable = False
        self._reading = None

    async def _next(self) -> bytes | None:
        """Return the next message, None if there is none; raise IdleStreamError."""
        coming = asyncio.ensure_future(anext(self._said, None))
        try:
            while not (await asyncio.wait({coming}, timeout=IDLE_S))[0]:
                if self._others_wait():
                    self.ended_idle = True
                    raise IdleStreamError
            return coming.result()
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
