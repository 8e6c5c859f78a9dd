"""Accepted requests: each waits in the queue, runs in a batch, and is answered exactly once.

Everything but `take` runs on the event loop's thread. `take` runs on the device's. What both touch
is touched under one lock: the queue, and what is known of the device.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from headroom_server.connection import Connection
from headroom_server.device.execution import Executed, Outputs
from headroom_server.engine import Work
from headroom_server.errors import DisconnectedError, ExpiredError, FailedError, RequestError
from headroom_server.runtime.batch_account import account
from headroom_server.runtime.pending import Pending
from headroom_server.scheduling.admission import Refusal
from headroom_server.scheduling.entries import Entry, Sealed
from headroom_server.scheduling.refusals import shed_error
from headroom_server.scheduling.scheduler import Scheduler
from headroom_server.scheduling.terms import Terms
from headroom_server.telemetry.accounting import Ledger
from headroom_server.tensors import Signature, finite
from headroom_server.tracing.current import TRACE


class Line(NamedTuple):
    """What a scrape shows of the queue."""

    waiting: int
    oldest_s: float | None
    """When the one that waits longest arrived."""
    delay_s: float | None
    """How long a request that came now would wait; None until the device was timed."""
    saturation: float | None


class InFlight:
    """The queue and what has left it for the device. `ring` wakes a device that found no work."""

    def __init__(
        self,
        scheduler: Scheduler[Pending],
        ledger: Ledger,
        *,
        clock: Callable[[], float],
        ring: Callable[[], None],
    ) -> None:
        self._scheduler = scheduler
        self._ledger = ledger
        self._clock = clock
        self._ring = ring
        self._keys = itertools.count()
        self._lock = threading.Lock()
        self._idle = False
        self.joined: Callable[[], None] | None = None
        """Called when a request joins the queue of a busy device that stages ahead."""
        self._accepted: dict[int, Pending] = {}
        self._signature: Signature | None = None

    @property
    def waiting_items(self) -> int:
        """Items in no batch yet."""
        return self._scheduler.batcher.items

    def line(self) -> Line:
        """The queue at this instant."""
        now_s, scheduler = self._clock(), self._scheduler
        with self._lock:
            return Line(
                len(scheduler.batcher),
                scheduler.batcher.oldest_s(),
                scheduler.delay_s(now_s),
                scheduler.saturation(now_s),
            )

    def serve(self, signature: Signature) -> None:
        """The shapes in which the device executes what comes from now on."""
        self._signature = signature

    async def outputs(
        self, work: Work, *, arrived_s: float, terms: Terms, connection: Connection
    ) -> Outputs:
        """Wait for a batch and give its outputs.

        Raises:
            RequestError: refused, expired, failed, abandoned or cancelled.
        """
        loop = asyncio.get_running_loop()
        entry = self._entry(Pending(work, loop.create_future(), TRACE.get()), arrived_s, terms)
        self._enter(entry)
        pending, timer = entry.work, None
        self._accepted[entry.key] = pending
        if entry.deadline_s is not None:
            timer = loop.call_later(entry.deadline_s - self._clock(), self._expire, entry)
        connection.on_lost = partial(self._leave, entry)
        try:
            outputs = await pending.answer
        except ExpiredError:
            self._scheduler.ended(entry, self._clock(), answered=False)
            raise
        except BaseException:
            self._withdraw(entry)
            raise
        else:
            if timer is not None:
                self._scheduler.ended(entry, self._clock(), answered=True)
            return outputs
        finally:
            connection.on_lost = None
            if timer is not None:
                timer.cancel()
            del self._accepted[entry.key]

    def take(self) -> Sealed[Pending]:
        """The next batch, for the device's thread."""
        with self._lock:
            sealed = self._scheduler.seal(self._clock())
            self._idle = not sealed.batch and not sealed.expired
        return sealed

    def peek(self) -> Sealed[Pending]:
        """About what `take` would give now."""
        with self._lock:
            return self._scheduler.batcher.peek(self._clock())

    def settle(self, done: Executed[Pending]) -> None:
        """Answer the requests of a batch, and those for whom it was too late; learn from it."""
        sealed, outputs = done.sealed, done.outputs
        for entry in sealed.expired:
            _fail(entry.work, _expired())
        if done.seconds > 0.0:  # else nothing was executed
            whole = done.stages is not None and bool(sealed.batch)
            with self._lock:
                self._scheduler.executed(sealed, done.began_s, done.seconds, whole=whole)
        if sealed.batch:
            self._ledger.executed(account(done, self._signature))
        for entry, answer in zip(sealed.batch, outputs, strict=True):
            if answer is None:
                _fail(entry.work, FailedError("the device failed on this request"))
            elif not all(map(finite, answer.values())):
                _fail(
                    entry.work,
                    FailedError("an output holds NaN or infinity, which JSON cannot carry"),
                )
            elif not entry.work.answer.done():
                entry.work.answer.set_result(answer)

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

    def _entry(self, pending: Pending, arrived_s: float, terms: Terms) -> Entry[Pending]:
        work, signature = pending.work, self._signature
        return Entry(
            next(self._keys),
            work.items,
            arrived_s,
            None if terms.deadline_s is None else arrived_s + terms.deadline_s,
            pending,
            signature.padded_length(work.length) if signature and work.length else 0,
            terms.priority,
            terms.tenant,
            sum([len(numbers) * numbers.itemsize for numbers in work.inputs.values()]),
        )

    def _enter(self, entry: Entry[Pending]) -> None:
        with self._lock:
            offer = self._scheduler.offer(entry, self._clock())
            wake = False
            if offer.refusal is None:
                wake, self._idle = self._idle, False
        if offer.refusal is not None:
            self._ledger.refuse(offer.refusal)
            raise shed_error(offer.refusal, offer.retry_after_s, self._scheduler.caps)
        if wake:
            self._ring()
        elif self.joined is not None:
            self.joined()
        for one in offer.evicted:
            self._ledger.refuse(Refusal.EVICTED)
            _fail(one.work, shed_error(Refusal.EVICTED, offer.retry_after_s, self._scheduler.caps))

    def _expire(self, entry: Entry[Pending]) -> None:
        if self._withdraw(entry):
            _fail(entry.work, _expired())

    def _leave(self, entry: Entry[Pending]) -> None:
        self._withdraw(entry)
        _fail(entry.work, DisconnectedError())

    def _withdraw(self, entry: Entry[Pending]) -> bool:
        with self._lock:
            return self._scheduler.withdraw(entry.key)


def _expired() -> ExpiredError:
    return ExpiredError("the deadline passed, or could not be met any more, while it waited")


def _fail(pending: Pending, error: RequestError) -> None:
    if not pending.answer.done():
        pending.answer.set_exception(error)
