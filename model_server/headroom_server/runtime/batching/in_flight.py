"""Accepted requests: each waits in the queue, runs in a batch, and is answered exactly once.

Everything runs on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from functools import partial

from headroom_server.connection import Connection
from headroom_server.device.batches import ExecutedBatch, Outputs
from headroom_server.engine import Work
from headroom_server.errors import DisconnectedError, ExpiredError, RequestError
from headroom_server.protocols.request_options import RequestOptions
from headroom_server.runtime.batching.pending import (
    DoneCallback,
    PendingRequest,
    account,
    checked,
    expired,
    resolve,
)
from headroom_server.runtime.batching.shared_queue import SharedQueue
from headroom_server.scheduling.admission import Refusal, shed_error
from headroom_server.scheduling.entries import QueueEntry
from headroom_server.scheduling.scheduler import ACCEPTED, Offer
from headroom_server.signature import Signature
from headroom_server.telemetry.accounting import Ledger
from headroom_server.tracing.current import TRACE, Trace


class InFlight:
    """The requests that wait in the queue, and those taken by devices."""

    def __init__(self, queue: SharedQueue, ledger: Ledger, *, clock: Callable[[], float]) -> None:
        self._queue = queue
        self._ledger = ledger
        self._clock = clock
        self._keys = itertools.count()
        self._accepted: dict[int, QueueEntry[PendingRequest]] = {}
        self._emptied = asyncio.Event()
        self._signature: Signature | None = None

    @property
    def fastest_s(self) -> float:
        """The shortest batch ever; 0 before the first."""
        return self._queue.fastest_s

    def serve(self, signature: Signature) -> None:
        """Set the shapes in which the device executes from now on."""
        self._signature = signature

    async def outputs(
        self, work: Work, *, arrived_s: float, options: RequestOptions, connection: Connection
    ) -> Outputs:
        """Wait for a batch and return its outputs.

        Raises:
            RequestError: refused, expired, failed, abandoned or cancelled.
        """
        answer: asyncio.Future[Outputs] = asyncio.get_running_loop().create_future()
        entry = self.submit(
            work,
            arrived_s=arrived_s,
            options=options,
            connection=connection,
            on_done=partial(resolve, answer),
            trace=TRACE.get(),
        )
        try:
            return await answer
        except asyncio.CancelledError:
            self._leave(entry)
            raise

    def submit(
        self,
        work: Work,
        *,
        arrived_s: float,
        options: RequestOptions,
        connection: Connection,
        on_done: DoneCallback,
        trace: Trace | None = None,
    ) -> QueueEntry[PendingRequest]:
        """Queue a request; `on_done` is called later, once, with its outputs or the error.

        Raises:
            RequestError: refused; `on_done` is not called.
        """
        pending = PendingRequest(work, on_done, connection, trace)
        entry = self._entry(pending, arrived_s, options)
        offer = self._queue.offer(entry)
        if offer is not ACCEPTED:
            self._shed(offer)
        self._accepted[entry.key] = entry
        if entry.deadline_s is not None:
            loop = asyncio.get_running_loop()
            left_s = entry.deadline_s - self._clock()
            pending.timer = loop.call_later(left_s, self._expire, entry)
        connection.on_lost = partial(self._leave, entry)
        return entry

    def settle(self, done: ExecutedBatch[PendingRequest], device: int = 0) -> None:
        """Answer the requests of a batch and those that expired, and learn from its duration."""
        sealed, outputs = done.sealed, done.outputs
        for entry in sealed.expired:
            self._end(entry, expired())
        if done.seconds > 0.0:  # else nothing was executed
            self._queue.record_batch(done, device)
        left = [entry.payload.done for entry in sealed.batch]
        for entry, answer in zip(sealed.batch, outputs, strict=True):
            self._end(entry, checked(answer, self._signature))
        if left:
            self._ledger.record_batch(account(done, left, self._signature))

    def fail_all(self, make_error: Callable[[], RequestError]) -> int:
        """Fail every request, including running ones; return how many."""
        return self.fail(self._accepted.values(), make_error)

    def fail(
        self, entries: Iterable[QueueEntry[PendingRequest]], make_error: Callable[[], RequestError]
    ) -> int:
        """Fail those of these requests that are unanswered; return how many."""
        unanswered = [entry for entry in entries if not entry.payload.done]
        for entry in unanswered:
            self._end(entry, make_error())
        return len(unanswered)

    async def wait_idle(self) -> None:
        """Wait until every accepted request has ended."""
        while self._accepted:
            self._emptied.clear()
            await self._emptied.wait()
            await asyncio.sleep(0)  # who awaits the last answers has them by then

    def _entry(
        self, pending: PendingRequest, arrived_s: float, options: RequestOptions
    ) -> QueueEntry[PendingRequest]:
        work, signature = pending.work, self._signature
        return QueueEntry(
            next(self._keys),
            work.items,
            arrived_s,
            None if options.deadline_s is None else arrived_s + options.deadline_s,
            pending,
            signature.padded_length(work.length) if signature and work.length else 0,
            options.priority,
            options.tenant,
            sum([len(numbers) * numbers.itemsize for numbers in work.inputs.values()]),
        )

    def _shed(self, offer: Offer[PendingRequest]) -> None:
        """Raise if the new request is refused; otherwise answer those evicted for it."""
        if offer.refusal is not None:
            self._ledger.refuse(offer.refusal)
            raise shed_error(offer.refusal, offer.retry_after_s, self._queue.caps)
        for one in offer.evicted:
            self._ledger.refuse(Refusal.EVICTED)
            self._end(one, shed_error(Refusal.EVICTED, offer.retry_after_s, self._queue.caps))

    def _end(self, entry: QueueEntry[PendingRequest], result: Outputs | RequestError) -> None:
        """End a request; later calls for it have no effect."""
        pending = entry.payload
        if pending.done:
            return
        pending.done = True
        pending.connection.on_lost = None
        if pending.timer is not None:
            pending.timer.cancel()
        del self._accepted[entry.key]
        now_s, error = self._clock(), result if isinstance(result, RequestError) else None
        if error is not None and not isinstance(error, ExpiredError):
            self._queue.withdraw(entry)
        elif entry.deadline_s is not None:
            self._queue.record_answer(entry, now_s, answered=error is None)
        pending.on_done(result)
        if not self._accepted:
            self._emptied.set()

    def _expire(self, entry: QueueEntry[PendingRequest]) -> None:
        if self._queue.withdraw(entry):
            self._end(entry, expired())

    def _leave(self, entry: QueueEntry[PendingRequest]) -> None:
        self._end(entry, DisconnectedError())
