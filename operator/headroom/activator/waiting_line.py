"""The requests of one service that wait for a replica, in order of arrival. Pure.

A request that cannot be sent on yet costs nothing when another one is looked for: a client may hold
two thousand bodies unfinished, and each request of any service looks for the next one twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from headroom.activator.held_request import HeldRequest

SPARE = 64
"""Entries of requests that no longer wait are removed when they are this many more than half."""

_Heap = list[tuple[float, int, HeldRequest]]


class WaitingLine:
    """Requests that wait. Each heap may still have requests that do not: they are passed over."""

    def __init__(self) -> None:
        self._waiting: set[HeldRequest] = set()
        self._by_end: _Heap = []
        """Requests by the time at which they are refused."""
        self._by_start: _Heap = []
        """Requests by the time before which they are not sent on."""
        self._due: _Heap = []
        """In order of arrival: those that may be sent on now."""

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def __contains__(self, held: HeldRequest) -> bool:
        """Return whether a request waits."""
        return held in self._waiting

    def add(self, held: HeldRequest) -> None:
        """Let a request wait; it is not sent on before `may_go`."""
        self._waiting.add(held)
        _push(self._by_end, held.until_s, held)

    def may_go(self, held: HeldRequest) -> None:
        """Let a request that waits be sent on from its `not_before_s` on."""
        if held in self._waiting:
            _push(self._by_start, held.not_before_s, held)

    def remove(self, held: HeldRequest) -> None:
        """Remove a request, if it waits."""
        self._waiting.discard(held)
        most = 2 * len(self._waiting) + SPARE
        for heap in (self._by_end, self._by_start, self._due):
            if len(heap) > most:
                heap[:] = [entry for entry in heap if entry[2] in self._waiting]
                heapify(heap)

    def first(self, now_s: float) -> HeldRequest | None:
        """Return the oldest request that may be sent on now; it still waits."""
        while self._by_start and self._by_start[0][0] <= now_s:
            _, number, held = heappop(self._by_start)
            heappush(self._due, (0.0, number, held))
        while self._due and not self._may_go(self._due[0][2], now_s):
            heappop(self._due)
        return self._due[0][2] if self._due else None

    def ended(self, now_s: float) -> Iterator[HeldRequest]:
        """Remove and return the requests whose time has ended."""
        while self._by_end and self._by_end[0][0] <= now_s:
            held = heappop(self._by_end)[2]
            if held in self._waiting:
                self.remove(held)
                yield held

    def _may_go(self, held: HeldRequest, now_s: float) -> bool:
        """Return whether an entry is still true: its request may have come back for later."""
        return held in self._waiting and held.not_before_s <= now_s


def _push(heap: _Heap, time_s: float, held: HeldRequest) -> None:
    heappush(heap, (time_s, held.number, held))
