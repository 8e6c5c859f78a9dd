"""Shares the event loop between the namespaces whose pages take long to parse.

A page of 256 kB of new series takes 50 to 110 ms. Each namespace has a token bucket of CPU time,
filled with its part of 30 % of the loop. A page that fits it is parsed at once; usual ones take 0.1
ms and always do. The others are parsed one at a time, the namespaces in turns, with a pause of
three times as long as each took. Together that is 55 % of the loop at most, and a tick of another
namespace waits for a page or two.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from headroom.fair_slots import FairSlots

SHARE = 0.3
"""Share of the loop, for pages that are parsed at once."""
BURST_S = 0.05
"""CPU time that a namespace may use at once."""
PAUSE = 3.0
WORST_S_PER_BYTE = 4e-7
"""Parsing time of new series, before any page of a namespace was parsed."""
SMOOTHING = 0.3
FORGOTTEN_S = 60.0

T = TypeVar("T")


@dataclass(slots=True)
class _Bucket:
    """CPU time of one namespace."""

    filled_s: float
    """When it was filled last."""
    left_s: float = BURST_S
    s_per_byte: float = WORST_S_PER_BYTE


class ParsingTurns:
    """Parses pages, at once or in turns."""

    def __init__(self, seconds: Callable[[], float] = time.thread_time) -> None:
        """`seconds` is CPU time: on a crowded machine a usual page may wait."""
        self._seconds = seconds
        self._buckets: dict[str, _Bucket] = {}
        """Used last at the end."""
        self._slow = FairSlots(1)

    async def parse(self, owner: str, size: int, page: Callable[[], T]) -> T:
        """Return what `page` returns, which parses so many bytes of this namespace."""
        bucket = self._filled(owner)
        if size * bucket.s_per_byte <= bucket.left_s:
            return self._timed(bucket, size, page)
        async with self._slow.slot(owner):
            begun_s = self._seconds()
            try:
                return self._timed(bucket, size, page)
            finally:
                await asyncio.sleep(PAUSE * (self._seconds() - begun_s))

    def _timed(self, bucket: _Bucket, size: int, page: Callable[[], T]) -> T:
        begun_s = self._seconds()
        try:
            return page()
        finally:
            spent_s = self._seconds() - begun_s
            bucket.left_s = max(-BURST_S, bucket.left_s - spent_s)
            bucket.s_per_byte += SMOOTHING * (spent_s / max(1, size) - bucket.s_per_byte)

    def _filled(self, owner: str) -> _Bucket:
        now_s = asyncio.get_running_loop().time()
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
