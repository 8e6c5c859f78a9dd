"""Reviews of credentials by the API server: bounded calls, shared fairly, with cached verdicts.

A client that reaches a port may send any number of made-up tokens, and each unknown one is a call
to the API server. Calls under way are bounded in sum and shared between the addresses that they
come from (`fair_share.py`); what does not fit is rejected without a call. Rejected verdicts do not
displace accepted ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from headroom.fair_share import FairShare

KEPT_S = 60.0
"""Time for which a verdict is cached, and so for which a revoked permission still works."""
REMEMBERED = 256
"""Verdicts of each kind; a further one displaces the oldest."""
AT_ONCE = 8
MOST_UNDER_WAY = 72
"""Reviews that run or wait: 8 run, so at 10 ms each the last one waits for 0.1 s. One address
takes at most half of them."""

V = TypeVar("V")


class TooManyReviewsError(Exception):
    """The address has its share of reviews under way."""


class BoundedReviews(Generic[V]):
    """Runs reviews and caches their verdicts."""

    def __init__(self, now_s: Callable[[], float], accepts: Callable[[V], bool]) -> None:
        self._now_s = now_s
        self._accepts = accepts
        self._accepted: dict[bytes, tuple[float, V]] = {}
        self._rejected: dict[bytes, tuple[float, V]] = {}
        """End and verdict of each review, by the digest of what was reviewed."""
        self._under_way: dict[bytes, asyncio.Task[V]] = {}
        self._share = FairShare(MOST_UNDER_WAY)
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def verdict(self, digest: bytes, peer: str, review: Callable[[], Awaitable[V]]) -> V:
        """Return the cached verdict, or that of a review; `peer` is the address it counts for.

        Raises TooManyReviewsError, and what the review raises, which is not cached.
        """
        for known in (self._accepted, self._rejected):
            found = known.get(digest)
            if found is not None and 0.0 <= self._now_s() - found[0] < KEPT_S:
                return found[1]
        task = self._under_way.get(digest)
        if task is None:
            if not self._share.fits(peer, 1):
                raise TooManyReviewsError(
                    f"too many reviews are under way for {peer or 'this address'}"
                )
            self._share.take(peer, 1)
            task = self._under_way[digest] = asyncio.create_task(self._run(digest, peer, review))
        return await asyncio.shield(task)

    async def _run(self, digest: bytes, peer: str, review: Callable[[], Awaitable[V]]) -> V:
        try:
            async with self._slots:
                verdict = await review()
        finally:
            self._share.give_back(peer, 1)
            del self._under_way[digest]
        is_accepted = self._accepts(verdict)
        kept, other = (
            (self._accepted, self._rejected) if is_accepted else (self._rejected, self._accepted)
        )
        other.pop(digest, None)
        kept.pop(digest, None)
        if len(kept) >= REMEMBERED:
            del kept[next(iter(kept))]
        kept[digest] = self._now_s(), verdict
        return verdict
