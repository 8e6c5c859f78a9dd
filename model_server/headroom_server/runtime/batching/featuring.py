"""Features of requests, before they are queued: from a cache, or computed on a thread of their own.

Everything but the computation runs on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import NamedTuple, Protocol

from headroom_server.caching.cache import Bounded, Cache, CacheCounts, CacheRequest
from headroom_server.device.batches import Outputs
from headroom_server.engine import Work
from headroom_server.errors import FailedError, RequestError
from headroom_server.scheduling.admission import Caps, over_caps, retry_after_s, shed_error
from headroom_server.signature import Signature
from headroom_server.telemetry.accounting import Ledger
from headroom_server.tensors import TensorSpec

log = logging.getLogger("headroom_server")


class Featurizing(Protocol):
    """A loaded model that has features."""

    @property
    def features(self) -> tuple[TensorSpec, ...]:
        """Features that are computed from a request's inputs."""

    def featured(self, work: Work) -> Work:
        """Return the request with its features in place of its inputs; may raise anything."""


class FeatureSource(NamedTuple):
    """Engine that computes a model's features, and the cache that keeps them."""

    model: Featurizing
    cache: Cache


class Featuring:
    """The features of one model's requests.

    `caps` bound the requests that wait for the thread, a `stall_s` how long one takes.
    """

    def __init__(
        self,
        source: FeatureSource,
        ledger: Ledger,
        caps: Caps,
        *,
        stall_s: float,
        clock: Callable[[], float],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._model, self._cache = source
        self._ledger = ledger
        self._caps = caps
        self._stall_s = stall_s
        self._clock = clock
        self._chance = chance
        self._thread = _Thread()
        self._active = 0
        self._waiting = Caps(0, 0)
        self._idle = asyncio.Event()

    def serve(self, signature: Signature) -> None:
        """Set the signature of the loaded model."""
        self._cache.serve(signature, self._model.features)

    def counts(self) -> CacheCounts:
        """Return the cache's statistics for metrics."""
        return self._cache.counts()

    async def wait_idle(self) -> None:
        """Wait until no request waits for its features."""
        while self._active:
            self._idle.clear()
            await self._idle.wait()

    def stop(self) -> None:
        """End the thread after its current computation."""
        self._thread.stop()

    async def featured(self, request: CacheRequest) -> Work:
        """Return a request with its features.

        Raises:
            RequestError: too many wait, it expired or left meanwhile, or the model failed.
        """
        self._active += 1
        try:
            features, _ = await self._cache.outputs(request, lambda: self._computed(request))
        finally:
            self._active -= 1
            self._idle.set()
        work = request.work
        return Work(work.items, features, work.length, featured=True)

    async def _computed(self, request: CacheRequest) -> Outputs:
        work, waiting = request.work, self._waiting
        refusal = over_caps(work.items, work.size, waiting.items, waiting.size, self._caps)
        if refusal is not None:
            self._ledger.refuse(refusal)
            raise shed_error(refusal, retry_after_s(None, self._chance()), self._caps)
        self._waiting = Caps(waiting.items + work.items, waiting.size + work.size)
        computing = self._thread.run(lambda: self._model.featured(work))
        try:
            async with asyncio.timeout(self._stall_s):
                return (await Bounded(request, self._clock)(computing)).inputs
        except RequestError:
            raise
        except Exception as error:
            log.exception("the features of a request of %d items failed", work.items)
            raise FailedError("the model failed on this request's features") from error
        finally:
            computing.cancel()
            now = self._waiting
            self._waiting = Caps(now.items - work.items, now.size - work.size)


class _Thread:
    """Runs one function after the other; the process may end while one hangs."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Future[Work], Callable[[], Work]] | None] = SimpleQueue()
        threading.Thread(target=self._run, name="features", daemon=True).start()

    def run(self, job: Callable[[], Work]) -> asyncio.Future[Work]:
        """Return a future of the result; if it is cancelled before its turn, nothing is run."""
        future: Future[Work] = Future()
        self._jobs.put((future, job))
        return asyncio.wrap_future(future)

    def stop(self) -> None:
        """End."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (one := self._jobs.get()) is not None:
            future, job = one
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(job())
            except Exception as error:  # noqa: BLE001 - raised in the task that awaits it
                future.set_exception(error)
