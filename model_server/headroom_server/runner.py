"""Between HTTP and the device: admits, queues, accounts, and answers every accepted request.

Everything but `_take` runs on the event loop's thread. `_take` runs on the device's; both touch the
queue under one lock. The ledger belongs to the loop alone, so that a scrape sees one consistent
instant.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from headroom_server.accounting import Ledger, Outcome
from headroom_server.admission import Refusal, admit, retry_after_s
from headroom_server.batching import Batcher, Entry, Sealed
from headroom_server.connection import Connection
from headroom_server.cost_model import CostModel
from headroom_server.device import DeviceThread, Executed, Outputs, WarmUpPlan
from headroom_server.engine import Engine, Work
from headroom_server.errors import (
    AbandonedError,
    DisconnectedError,
    ExpiredError,
    FailedError,
    QueueFullError,
    RefusedError,
    RequestError,
)
from headroom_server.lifecycle import Lifecycle, Phase
from headroom_server.metrics import Snapshot
from headroom_server.tensors import Signature, finite
from headroom_server.warming import SelfTest

log = logging.getLogger("headroom_server")


class Pending(NamedTuple):
    """A request's numbers, and the future on which its answer is awaited."""

    work: Work
    answer: asyncio.Future[Outputs]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is batched and how much may wait, in items; how long one batch may take."""

    max_batch_size: int
    max_waiting: int
    stall_timeout_s: float


class Runner:
    """One model on one device."""

    def __init__(
        self,
        model: str,
        engine: Engine,
        plan: WarmUpPlan,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self.engine = engine
        self.limits = limits
        self.clock = clock
        self.ledger = Ledger()
        self.lifecycle = Lifecycle(since_s=clock())
        self.signature: Signature | None = None
        self.self_test: SelfTest | None = None
        self.failure: str | None = None
        """Why nothing will be executed any more."""
        self._cost: CostModel | None = None
        self._keys = itertools.count()
        self._lock = threading.Lock()
        self._batcher: Batcher[Pending] = Batcher(limits.max_batch_size)
        self._idle = False
        self._door_open = True
        self._accepted: dict[int, Pending] = {}
        self._device: DeviceThread[Pending] = DeviceThread(
            engine, plan, take=self._take, work_of=lambda pending: pending.work, clock=clock
        )
        self._ended = asyncio.Event()

    # ---- life

    def start(self) -> None:
        """Begin to load, on the running loop."""
        self._device.start(asyncio.get_running_loop().call_soon_threadsafe, self)

    async def failed(self) -> str:
        """Wait until nothing will be executed any more; say why."""
        await self._ended.wait()
        return self.failure or ""

    def drain(self) -> None:
        """No longer ready. A loaded model still takes requests until the door is closed."""
        if not self.draining:
            self._enter(Phase.DRAINING)

    def close_door(self) -> None:
        """Refuse what comes from now on."""
        self._door_open = False

    async def emptied(self) -> None:
        """Wait until every accepted request has ended."""
        while self._accepted:
            await asyncio.wait([pending.answer for pending in self._accepted.values()])
            await asyncio.sleep(0)

    def abandon(self) -> int:
        """Answer everything that is still in flight with an error; say how many there were."""
        pending = [p for p in self._accepted.values() if not p.answer.done()]
        for one in pending:
            one.answer.set_exception(AbandonedError("the server stopped before it could answer"))
        return len(pending)

    def stop(self) -> None:
        """End the device thread after the batch in hand."""
        self._device.stop()
        if self.lifecycle.phase is not Phase.STOPPED:
            self._enter(Phase.STOPPED)

    @property
    def ready(self) -> bool:
        """Warm, able to execute, and not on the way out."""
        return self.lifecycle.ready and self.failure is None

    @property
    def draining(self) -> bool:
        """On the way out."""
        return self.lifecycle.phase is Phase.DRAINING or self.lifecycle.phase is Phase.STOPPED

    @property
    def live(self) -> bool:
        """Whether a restart would not help: independent of load."""
        busy_since_s = self._device.busy_since_s
        stalled = (
            busy_since_s is not None and self.clock() - busy_since_s > self.limits.stall_timeout_s
        )
        return self._device.alive and self.failure is None and not stalled

    # ---- requests

    def refuse_unready(self) -> None:
        """Count and refuse a request that cannot even be checked, since no model is loaded.

        Raises:
            RefusedError: always.
        """
        self.ledger.received += 1
        self.ledger.end(Outcome.REFUSED, 0.0)
        raise self._refused(Refusal.NOT_READY)

    async def infer(
        self, work: Work, *, arrived_s: float, deadline_s: float | None, connection: Connection
    ) -> Outputs:
        """Wait for a batch and give its outputs. Cancelled where the client leaves meanwhile.

        Raises:
            RequestError: refused, expired, failed, abandoned or cancelled; each is one outcome.
        """
        self.ledger.received += 1
        outcome = Outcome.CANCELLED
        entry = timer = None
        try:
            self._admit(work.items)
            loop = asyncio.get_running_loop()
            pending = Pending(work, loop.create_future())
            entry = Entry(next(self._keys), work.items, arrived_s, deadline_s, pending)
            if deadline_s is not None:
                timer = loop.call_later(deadline_s - self.clock(), self._expire, entry)
            connection.on_lost = partial(self._leave, entry)
            self._enqueue(entry)
            outputs = await pending.answer
            outcome = Outcome.OK
        except RequestError as error:
            outcome = _OUTCOMES.get(type(error), Outcome.FAILED)
            raise
        else:
            return outputs
        finally:
            connection.on_lost = None
            if timer is not None:
                timer.cancel()
            if entry is not None:
                del self._accepted[entry.key]
                if outcome is not Outcome.OK:
                    self._withdraw(entry)
            self.ledger.end(outcome, self.clock() - arrived_s)

    def _admit(self, items: int) -> None:
        serving = self.signature is not None and self.failure is None
        refusal = admit(
            items,
            ready=serving,
            draining=self.draining and not (self._door_open and serving),
            waiting_items=self._batcher.items,
            max_waiting_items=self.limits.max_waiting,
        )
        if refusal is not None:
            raise self._refused(refusal)

    def _refused(self, refusal: Refusal) -> RefusedError:
        if refusal is Refusal.DRAINING:
            return RefusedError("this replica is stopping", retry_after_s=1)
        if refusal is Refusal.NOT_READY:
            return RefusedError("this replica is not ready", retry_after_s=1)
        size = self.limits.max_batch_size
        rate = self._cost.throughput(size) if self._cost else None
        seconds = retry_after_s(self._batcher.items, rate)
        return QueueFullError(
            f"at most {self.limits.max_waiting} items may wait; try again after {seconds} s",
            retry_after_s=seconds,
        )

    def _enqueue(self, entry: Entry[Pending]) -> None:
        self._accepted[entry.key] = entry.work
        with self._lock:
            self._batcher.add(entry)
            wake, self._idle = self._idle, False
        if wake:
            self._device.ring()

    def _expire(self, entry: Entry[Pending]) -> None:
        if self._withdraw(entry):
            _fail(entry, ExpiredError("the request's deadline passed while it waited"))

    def _leave(self, entry: Entry[Pending]) -> None:
        self._withdraw(entry)
        _fail(entry, DisconnectedError())

    def _withdraw(self, entry: Entry[Pending]) -> bool:
        with self._lock:
            return self._batcher.withdraw(entry.key) is not None

    # ---- the device's side

    def _take(self) -> Sealed[Pending]:
        with self._lock:
            sealed = self._batcher.seal(self.clock())
            self._idle = not sealed.batch and not sealed.expired
        return sealed

    def entered(self, phase: Phase) -> None:
        """A startup phase has begun on the device."""
        if self.lifecycle.starting:
            self._enter(phase)

    def tested(self, result: SelfTest) -> None:
        """A self-test has ended."""
        self.self_test = result
        if not result.passed:
            log.warning(
                "self-test: p95 %.1f ms, allowed %.1f ms; testing again",
                result.p95_s * 1000,
                result.max_latency_s * 1000,
            )

    def warmed(self, signature: Signature, timings: Sequence[tuple[int, float]]) -> None:
        """The device is ready."""
        self.signature = signature
        self._cost = CostModel.from_warm_up(timings)
        if self.lifecycle.starting:
            self._enter(Phase.READY)

    def executed(self, done: Executed[Pending]) -> None:
        """Answer the requests of a batch."""
        for entry in done.sealed.expired:
            _fail(entry, ExpiredError("the request's deadline passed while it waited"))
        if not done.sealed.batch:
            return
        items = done.sealed.items
        self.ledger.executed(items, done.seconds)
        for entry in done.sealed.batch:
            self.ledger.queue_s.observe(max(0.0, done.began_s - entry.arrived_s))
        if done.outputs is None:
            for entry in done.sealed.batch:
                _fail(entry, FailedError("the device failed on the batch of this request"))
            return
        if self._cost is not None and done.seconds > 0.0:
            self._cost = self._cost.observe(items, done.seconds)
        for entry, outputs in zip(done.sealed.batch, done.outputs, strict=True):
            if not all(map(finite, outputs.values())):
                _fail(
                    entry, FailedError("an output holds NaN or infinity, which JSON cannot carry")
                )
            elif not entry.work.answer.done():
                entry.work.answer.set_result(outputs)

    def lost(self, message: str) -> None:
        """Nothing more will be executed: answer all that wait."""
        self.failure = message
        log.error("%s", message)
        for pending in list(self._accepted.values()):
            if not pending.answer.done():
                pending.answer.set_exception(FailedError("the device is lost"))
        self._ended.set()

    # ---- reports

    def snapshot(self) -> Snapshot:
        """What a scrape shows."""
        now_s = self.clock()
        with self._lock:
            waiting, oldest_s = len(self._batcher), self._batcher.oldest_s()
        return Snapshot(
            model=self.model,
            engine=self.engine.name,
            device=self.engine.device,
            emulated=self.engine.emulated,
            ledger=self.ledger,
            waiting=waiting,
            oldest_waiting_s=0.0 if oldest_s is None else max(0.0, now_s - oldest_s),
            max_batch_size=self.limits.max_batch_size,
            cost=self._cost,
            phase=self.lifecycle.phase,
            phase_s=self.lifecycle.seconds(now_s),
        )

    def _enter(self, phase: Phase) -> None:
        left = self.lifecycle
        self.lifecycle = left.advance(phase, self.clock())
        log.info("%s after %.2f s of %s", phase, self.lifecycle.spent_s[left.phase], left.phase)


_OUTCOMES: dict[type[RequestError], Outcome] = {
    RefusedError: Outcome.REFUSED,
    QueueFullError: Outcome.REFUSED,
    ExpiredError: Outcome.EXPIRED,
    DisconnectedError: Outcome.CANCELLED,
}


def _fail(entry: Entry[Pending], error: RequestError) -> None:
    if not entry.work.answer.done():
        entry.work.answer.set_exception(error)
