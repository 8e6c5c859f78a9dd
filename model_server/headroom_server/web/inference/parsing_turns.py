"""Large bodies are parsed one at a time; between two of them the event loop serves all others.

The loop handles everything that is ready before it looks for more: 200 bodies that each take 20 ms
would be parsed in one go, and a probe that arrives meanwhile would wait for 4 s. A new connection
needs several rounds of the loop until its answer is written, and gets them between two bodies.
"""

from __future__ import annotations

import asyncio

from headroom_server.web.inference.fair_turns import FairTurns

SMALL_BYTES = 16 * 1024
"""Smaller bodies are parsed at once: most take less than 0.2 ms."""
ROUNDS = 5
"""Rounds of the loop: accept, connect, register, read, and one to spare."""


class ParsingTurns:
    """Turns, fair between clients."""

    def __init__(self) -> None:
        self._turns = FairTurns()

    async def wait(self, size: int, client: str) -> None:
        """Wait until a body of this size may be parsed, which the caller does without awaiting."""
        if size <= SMALL_BYTES:
            return
        async with self._turns.turn(client):
            for _ in range(ROUNDS):
                await asyncio.sleep(0)
