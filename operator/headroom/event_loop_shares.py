"""Shares the event loop between owners whose work takes long: pages to parse, pages to render.

An owner is a namespace (of metrics pages, events of pods and lists) or a client's address (of the
console). Each has a token bucket of CPU time, filled with its part of 30 % of the loop. Work that
fits it runs at once: a usual metrics page takes 0.1 ms and always fits, one of 256 kB of new series
takes 50 to 110 ms. Other work runs one at a time, the owners in turns, each followed by a pause of
three times its length. Together that is 55 % of the loop at most, and a tick of another namespace
waits for a page or two.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from headroom.fair_slots import FairSlots

SHARE = 0.3
"""Share of the loop, for work that runs at once."""
BURST_S = 0.05
"""CPU time that an owner may use at once."""
PAUSE = 3.0
WORST_S_PER_BYTE = 4e-7
"""Time to parse new series, before any page of an owner was parsed."""
SMOOTHING = 0.3
FORGOTTEN_S = 60.0

T = TypeVar("T")


@dataclass(slots=True)
class _Bucket:
    """CPU time of one owner."""

    filled_s: float
    """Time when it was filled last."""
    left_s: float = BURST_S
    s_per_byte: float = WORST_S_PER_BYTE


class EventLoopShares:
    """Runs work at once while its owner has CPU time left, else in turns."""

    def __init__(self, seconds: Callable[[], float] = time.thread_time) -> None:
        """`seconds` reads CPU time: by wall-clock time, work would wait on a busy machine."""
        self._seconds = seconds
        self._buckets: dict[str, _Bucket] = {}
        """Buckets by owner, the one that ran last at the end."""
        self._stolen_s = 0.0
        """Time of all work in which the machine ran something else. It fills no bucket: where work
        takes longer than its CPU time divided by `SHARE`, all work would fit."""
        self._slow = FairSlots(1)

    async def run(self, owner: str, size: int, work: Callable[[], T]) -> T:
        """Run the work of an owner and return its result; `size` predicts how long it takes."""
        bucket = self._filled(owner)
        if _fits(bucket, size):
            return self._timed(bucket, size, work)
        async with self._slow.slot(owner):
            begun_s = self._seconds()
            try:
                return self._timed(bucket, size, work)
            finally:
                await asyncio.sleep(PAUSE * (self._seconds() - begun_s))

    def run_now(self, owner: str, size: int, work: Callable[[], object]) -> bool:
        """Run the work if its owner has CPU time left; return whether it did."""
        bucket = self._filled(owner)
        fits = _fits(bucket, size)
        if fits:
            self._timed(bucket, size, work)
        return fits

    def _timed(self, bucket: _Bucket, size: int, work: Callable[[], T]) -> T:
        clock_s = asyncio.get_running_loop().time
        begun_s, entered_s = self._seconds(), clock_s()
        try:
            return work()
        finally:
            spent_s = self._seconds() - begun_s
            self._stolen_s += max(0.0, clock_s() - entered_s - spent_s)
            bucket.left_s = max(-BURST_S, bucket.left_s - spent_s)
            bucket.s_per_byte += SMOOTHING * (spent_s / max(1, size) - bucket.s_per_byte)

    def _filled(self, owner: str) -> _Bucket:
        now_s = asyncio.get_running_loop().time() - self._stolen_s
        bucket = self._buckets.pop(owner, None) or _Bucket(now_s)
        while self._buckets and now_s - self._first().filled_s > FORGOTTEN_S:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[owner] = bucket
        more_s = (now_s - bucket.filled_s) * SHARE / len(self._buckets)
        bucket.left_s = min(BURST_S, bucket.left_s + more_s)
        bucket.filled_s = now_s
        return bucket

    def _first(self) -> _Bucket:
        return next(iter(self._buckets.values()))


def _fits(bucket: _Bucket, size: int) -> bool:
    return size * bucket.s_per_byte <= bucket.left_s
