"""Tensors computed from requests: memory, then the second level, then one computation per key.

One model's response cache keeps its outputs, its feature cache what it computes from the inputs.

Errors are never cached. A hit needs no place in the queue and no admission. Everything runs on the
event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from headroom_server.caching.flights import SingleFlight, Source, Steps
from headroom_server.caching.keys import Keys
from headroom_server.caching.levels import LevelCounts, LevelOptions, Levels
from headroom_server.caching.values import decoded, encoded, size_of
from headroom_server.connection import Connection
from headroom_server.device.batches import Outputs
from headroom_server.engine import Work
from headroom_server.errors import DisconnectedError, ExpiredError, RequestError
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec

T = TypeVar("T")


class CacheCounts(NamedTuple):
    """Cache statistics for metrics."""

    by_source: Mapping[Source, int]
    """Answers by source; executions that were started, for `COMPUTED`."""
    levels: LevelCounts


MAX_JOINED_BYTES = 1 << 30
"""Bytes of requests that wait for an equal one; more compute on their own."""


class CacheRequest(NamedTuple):
    """One request: its numbers, its deadline, and its connection."""

    work: Work
    due_s: float | None
    connection: Connection
    owner: str | None = None
    """The tenant of these entries; None: all tenants share them."""
    line: tuple[str, int] = ("", 0)
    """Tenant and priority, by which it is served. It waits for no equal request of another line:
    that one may wait behind all that its tenant has asked, at the last priority."""


class Cache:
    """Usable once `serve` has set the signature."""

    def __init__(
        self, identity: str, options: LevelOptions, max_joined_bytes: int = MAX_JOINED_BYTES
    ) -> None:
        self._identity = identity
        self._clock = options.clock
        self._levels: Levels[Outputs] = Levels(options, size_of)
        self._flights: SingleFlight[Outputs] = SingleFlight(max_joined_bytes)
        self._specs: Sequence[TensorSpec] = ()
        self._keys: Keys | None = None
        self._by_source = dict.fromkeys(Source, 0)

    def serve(self, signature: Signature, specs: Sequence[TensorSpec] = ()) -> None:
        """Set the signature of the loaded model, and what is cached: by default its outputs."""
        self._specs, self._keys = specs or signature.outputs, Keys(self._identity, signature)
        self._levels.start()

    def counts(self) -> CacheCounts:
        """Return the current statistics for metrics."""
        return CacheCounts(dict(self._by_source), self._levels.counts())

    async def wait_idle(self) -> None:
        """Wait until no execution is running or pending."""
        await self._flights.wait_idle()

    async def outputs(
        self, request: CacheRequest, execute: Callable[[], Awaitable[Outputs]]
    ) -> tuple[Outputs, Source]:
        """Return cached outputs or those of an execution, with their source.

        Raises:
            RequestError: raised by `execute`, or the request expired or left while it waited.
        """
        keys, specs = self._keys, self._specs
        assert keys is not None
        key, levels = keys.key(request.work, request.owner), self._levels
        tenant = request.line[0]
        kept = levels.remembered(key)
        if kept is not None:
            self._by_source[Source.MEMORY] += 1
            return kept, Source.MEMORY

        def decode(stored: bytes) -> Outputs | None:
            return decoded(key, stored, request.work, specs)

        async def compute() -> Outputs:
            self._by_source[Source.COMPUTED] += 1
            outputs = await execute()
            levels.keep(key, outputs, lambda key, one: encoded(key, one, specs), tenant)
            return outputs

        wait = Bounded(request, self._clock)
        steps = Steps(lambda: levels.stored(key, decode, tenant, wait), compute, wait)
        flight = key + repr(request.line).encode()
        outputs, source = await self._flights.value(flight, steps, request.work.size)
        if source is not Source.COMPUTED:
            self._by_source[source] += 1
        return outputs, source


class Bounded(NamedTuple):
    """Waits until the client disconnects or the deadline passes."""

    request: CacheRequest
    clock: Callable[[], float]

    async def __call__(self, awaited: asyncio.Future[T]) -> T:
        """Return a future's result, or raise what ended the request."""
        request, loop = self.request, asyncio.get_running_loop()
        first: asyncio.Future[None] = loop.create_future()

        def end(error: RequestError | None, _: object = None) -> None:
            if not first.done():
                first.set_result(None) if error is None else first.set_exception(error)

        awaited.add_done_callback(partial(end, None))
        timer = None
        if request.due_s is not None:
            expired = ExpiredError("the deadline passed while the request waited")
            timer = loop.call_later(request.due_s - self.clock(), end, expired)
        request.connection.on_lost = lambda: end(DisconnectedError())
        try:
            await first
            return awaited.result()
        finally:
            request.connection.on_lost = None
            if timer is not None:
                timer.cancel()
