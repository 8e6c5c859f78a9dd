"""Large reads of connections are parsed for some milliseconds in each round of the event loop.

A read has up to 256 KiB: 40 000 chunks of a byte, or 10 000 lines of a head, take 20 ms to parse.
The loop hands out the reads of all connections before it looks for more: with 200 of them a probe
would wait for 4 s, in each of the rounds that it needs. Reads that must wait take turns by client,
and their connections are not read meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable

SMALL_READ_BYTES = 4 * 1024
"""Parsed at once: at most 0.3 ms."""
ROUND_S = 0.01

Parse = Callable[[], None]


class ReadTurns:
    """The reads of all connections of a server."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._spent_s = 0.0
        self._begins = False
        """Whether the next round is scheduled."""
        self._waiting: OrderedDict[str, deque[Parse]] = OrderedDict()

    @property
    def free(self) -> bool:
        """Whether a read may be parsed now."""
        return not self._waiting and self._spent_s < ROUND_S

    def parse(self, parse: Parse) -> None:
        """Parse a read, and count its time."""
        begun_s = self._clock()
        try:
            parse()
        finally:
            self._spent_s += self._clock() - begun_s
            self._schedule()

    def later(self, client: str, parse: Parse) -> None:
        """Parse a read of a client when it is its turn."""
        self._waiting.setdefault(client, deque()).append(parse)
        self._schedule()

    def _schedule(self) -> None:
        if not self._begins:
            self._begins = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """Begin a round: as many reads as its time allows, at least one."""
        self._begins = False
        self._spent_s = 0.0
        while self._waiting and self._spent_s < ROUND_S:
            client, reads = self._waiting.popitem(last=False)
            first = reads.popleft()
            if reads:
                self._waiting[client] = reads
            self.parse(first)
