"""What a caller says: read once, said again to the next replica until one begins to answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable


class Words:
    """The messages of a call; nothing is read before a try asks for it."""

    def __init__(self, said: AsyncIterator[bytes], keep: Callable[[int], bool]) -> None:
        """`keep` says whether so many bytes more may be kept for another try."""
        self._said = aiter(said)
        self._keep = keep
        self._kept: list[bytes] = []
        self._dropped = 0
        """Messages at the beginning that are kept no more."""
        self._reading: asyncio.Task[None] | None = None
        self._ended = False
        self.repeatable = True
        """Whether all that was said can be said again."""

    async def of_a_try(self) -> AsyncIterator[bytes]:
        """Say everything from the beginning; the try before has ended."""
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
        """A replica has begun to answer: what it was told is kept no longer."""
        self.repeatable = False

    async def end(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        if isinstance(self._said, AsyncGenerator):
            await self._said.aclose()

    async def _more(self) -> None:
        """Read one message more; a try that is given up leaves the reading to the next one."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        try:
            message = await anext(self._said)
        except StopAsyncIteration:
            self._ended = True
        else:
            self._kept.append(message)
            if self.repeatable and not self._keep(len(message)):
                self.repeatable = False
        self._reading = None
