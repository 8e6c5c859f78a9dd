"""All sockets are read into one buffer, for some milliseconds in each round of the event loop.

The loop reads every connection that has something before it looks for more: with 200 of them that
send bodies, or chunks of a byte, a round took from 60 ms to 4 s, and a probe needs several. Once
the time of a round is spent, a read takes 4 KiB, and the connection is not read again before its
turn, by client. What waits stays in the socket's buffer.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable

READ_BYTES = 128 * 1024
"""More than a direct request has; 40 000 lines or chunks take at most 10 ms to parse."""
SMALL_READ_BYTES = 4 * 1024
"""Parsed at once: at most 0.3 ms."""
ROUND_S = 0.01
MOST_GRANTED = 32
"""Turns of one round: reads of plain bodies take 0.1 ms each."""

Resume = Callable[[], None]


class ReadTurns:
    """The reads of all connections of a server."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._bytes = memoryview(bytearray(READ_BYTES))
        self._few = self._bytes[:SMALL_READ_BYTES]
        self._begun_s = 0.0
        self._spent_s = 0.0
        self._begins = False
        """Whether the next round is scheduled."""
        self._waiting: OrderedDict[str, deque[Resume]] = OrderedDict()
        self._granted = 1
        """Turns of the next round: twice as many after a round with time left, or half as many."""

    def buffer(self, *, granted: bool) -> memoryview:
        """Return what the next read may fill: all where it is this one's turn, or none waits."""
        self._begun_s = self._clock()
        free = self._spent_s < ROUND_S and (granted or not self._waiting)
        return self._bytes if free else self._few

    def take(self, size: int) -> bytes:
        """Return what was read."""
        return bytes(self._bytes[:size])

    def ended(self) -> None:
        """Count the time since the last read began."""
        self._spent_s += self._clock() - self._begun_s
        self._schedule()

    def later(self, client: str, resume: Resume) -> None:
        """Resume a connection of a client when it is its turn."""
        self._waiting.setdefault(client, deque()).append(resume)
        self._schedule()

    def _schedule(self) -> None:
        if not self._begins:
            self._begins = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """Begin a round: grant turns, each of which is read when the loop looks at the sockets."""
        self._begins = False
        late = self._spent_s >= ROUND_S
        self._granted = max(1, self._granted // 2) if late else min(MOST_GRANTED, self._granted * 2)
        self._spent_s = 0.0
        for _ in range(self._granted):
            if not self._waiting:
                return
            client, turns = self._waiting.popitem(last=False)
            first = turns.popleft()
            if turns:
                self._waiting[client] = turns
            first()
        if self._waiting:
            self._schedule()
