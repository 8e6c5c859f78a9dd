"""The work of a leader as a task: begun with leadership, and ended with it within a bound."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

_log = logging.getLogger(__name__)

END_WITHIN_S = 3.0
"""Most time that the work of a leader may take to end. Beyond it the process is not to be
trusted."""


class LeaderTask:
    """Runs at most one work at a time."""

    def __init__(self) -> None:
        self._task: asyncio.Future[None] | None = None

    @property
    def running(self) -> bool:
        """Whether a work was begun and not ended."""
        return self._task is not None

    def begin(self, work: Awaitable[None]) -> None:
        """Begin a work."""
        self._task = asyncio.ensure_future(work)

    async def wait(self, timeout_s: float) -> None:
        """Wait so long; raise the exception of the work, and RuntimeError if it returns."""
        if self._task is None:
            await asyncio.sleep(timeout_s)
            return
        done, _ = await asyncio.wait([self._task], timeout=timeout_s)
        if done:
            task, self._task = self._task, None
            await task
            raise RuntimeError("the work of the leader ended unexpectedly")

    async def end(self) -> None:
        """Cancel the work; raise RuntimeError if it goes on."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait([task], timeout=END_WITHIN_S)
        if not task.done():
            raise RuntimeError(f"the work of the leader did not end within {END_WITHIN_S:g} s")
        if not task.cancelled() and task.exception() is not None:
            _log.warning("the work of the leader failed: %r", task.exception())
