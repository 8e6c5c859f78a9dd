"""Accepted requests: each waits in the queue, runs in a batch, and is answered exactly once.

Everything but `take` runs on the event loop's thread. `take` runs on the device's; both touch the
queue under one lock.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from headroom_server.batching import Batcher, Entry, Sealed
from headroom_server.connection import Connection
from headroom_server.device import Executed, Outputs
from headroom_server.engine import Work
from headroom_server.errors import DisconnectedError, ExpiredError, FailedError, RequestError
from headroom_server.tensors import finite
from headroom_server.terms import Terms


class Pending(NamedTuple):
    """A request's numbers, and the future on which its answer is awaited."""

    work: Work
    answer: asyncio.Future[Outputs]


class InFlight:
    """The queue and what has left it for the device. `ring` wakes a device that found no work."""

    def __init__(
        self, max_batch_size: int, *, clock: Callable[[], float], ring: Callable[[], None]
    ) -> None:
        self._clock = clock
        self._ring = ring
        self._keys = itertools.count()
        self._lock = threading.Lock()
        self._batcher: Batcher[Pending] = Batcher(max_batch_size)
        self._idle = False
        self._accepted: dict[int, Pending] = {}

    @property
    def waiting_items(self) -> int:
        """Items in no batch yet."""
        return self._batcher.items

    def waiting(self) -> tuple[int, float | None]:
        """Requests in no batch yet, and when the first in line arrived."""
        with self._lock:
            return len(self._batcher), self._batcher.oldest_s()

    async def outputs(
        self, work: Work, *, arrived_s: float, terms: Terms, connection: Connection
    ) -> Outputs:
        """Wait for a batch and give its outputs.

        Raises:
            RequestError: expired, failed, abandoned or cancelled.
        """
        loop = asyncio.get_running_loop()
        deadline_s = None if terms.deadline_s is None else arrived_s + terms.deadline_s
        pending = Pending(work, loop.create_future())
        entry = Entry(next(self._keys), work.items, arrived_s, deadline_s, pending)
        timer = None
        if deadline_s is not None:
            timer = loop.call_later(deadline_s - self._clock(), self._expire, entry)
        connection.on_lost = partial(self._leave, entry)
        self._enqueue(entry)
        try:
            return await pending.answer
        finally:
            connection.on_lost = None
            if timer is not None:
                timer.cancel()
            self._withdraw(entry)
            del self._accepted[entry.key]

    def take(self) -> Sealed[Pending]:
        """The next batch, for the device's thread."""
        with self._lock:
            sealed = self._batcher.seal(self._clock())
            self._idle = not sealed.batch and not sealed.expired
        return sealed

    def settle(self, done: Executed[Pending]) -> None:
        """Answer the requests of a batch, and those that had expired before it."""
        for entry in done.sealed.expired:
            _fail(entry.work, _expired())
        if done.outputs is None:
            for entry in done.sealed.batch:
                _fail(entry.work, FailedError("the device failed on the batch of this request"))
            return
        for entry, outputs in zip(done.sealed.batch, done.outputs, strict=True):
            if not all(map(finite, outputs.values())):
                _fail(
                    entry.work,
                    FailedError("an output holds NaN or infinity, which JSON cannot carry"),
                )
            elif not entry.work.answer.done():
                entry.work.answer.set_result(outputs)

    def fail_all(self, make_error: Callable[[], RequestError]) -> int:
        """Answer everything with an error, also what runs; say how many requests that were."""
        unanswered = [pending for pending in self._accepted.values() if not pending.answer.done()]
        for pending in unanswered:
            _fail(pending, make_error())
        return len(unanswered)

    async def emptied(self) -> None:
        """Wait until every accepted request has ended."""
        while self._accepted:
            await asyncio.wait([pending.answer for pending in self._accepted.values()])
            await asyncio.sleep(0)

    def _enqueue(self, entry: Entry[Pending]) -> None:
        self._accepted[entry.key] = entry.work
        with self._lock:
            self._batcher.add(entry)
            wake, self._idle = self._idle, False
        if wake:
            self._ring()

    def _expire(self, entry: Entry[Pending]) -> None:
        if self._withdraw(entry):
            _fail(entry.work, _expired())

    def _leave(self, entry: Entry[Pending]) -> None:
        self._withdraw(entry)
        _fail(entry.work, DisconnectedError())

    def _withdraw(self, entry: Entry[Pending]) -> bool:
        with self._lock:
            return self._batcher.withdraw(entry.key) is not None


def _expired() -> ExpiredError:
    return ExpiredError("the request's deadline passed while it waited")


def _fail(pending: Pending, error: RequestError) -> None:
    if not pending.answer.done():
        pending.answer.set_exception(error)
