"""Large bodies are parsed one at a time; between two of them the event loop serves all others.

The loop handles everything that is ready before it looks for more: 200 bodies that each take 20 ms
would be parsed in one go, and a probe that arrives meanwhile would wait for 4 s.
"""

from __future__ import annotations

import asyncio

SMALL_BYTES = 16 * 1024
"""Smaller bodies are parsed at once: most take less than 0.2 ms."""


class ParsingTurns:
    """Turns in the order of arrival."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def wait(self, size: int) -> None:
        """Wait until a body of this size may be parsed, which the caller does without awaiting."""
        if size <= SMALL_BYTES:
            return
        async with self._lock:
            await asyncio.sleep(0)
