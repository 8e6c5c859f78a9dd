"""The scheduling decisions: admission, order of service, and learning from batches. Pure.

The scheduler gets every event with its time, and has neither clock nor thread nor random numbers of
its own: the server and simulations drive it alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from headroom_server.scheduling.admission import Caps, Refusal, over_caps, retry_after_s
from headroom_server.scheduling.batching import Batcher
from headroom_server.scheduling.cost_model import CostModel, EwmaSpread
from headroom_server.scheduling.deadline_admission import DeadlineAdmission
from headroom_server.scheduling.deadline_margin import DeadlineMargin
from headroom_server.scheduling.entries import QueueEntry, SealedBatch
from headroom_server.scheduling.finish_prediction import FinishPrediction

T = TypeVar("T")


class Offer(NamedTuple, Generic[T]):
    """The result for a new request; accepted if `refusal` is None."""

    refusal: Refusal | None = None
    retry_after_s: int = 0
    evicted: tuple[QueueEntry[T], ...] = ()
    """Entries evicted for it."""


class Scheduler(Generic[T]):
    """The queue, the cost model, the margins. `chance` returns numbers from 0 to 1."""

    def __init__(
        self,
        max_batch_size: int,
        caps: Caps,
        *,
        chance: Callable[[], float],
        max_wait_s: float = 0.0,
        devices: int = 1,
    ) -> None:
        self.batcher: Batcher[T] = Batcher(max_batch_size, max_wait_s=max_wait_s)
        self.caps = caps
        self._prediction = FinishPrediction(self.batcher, devices)
        self._deadlines = DeadlineAdmission(self.batcher, self._prediction)
        self._chance = chance

    # ---- requests

    def offer(self, entry: QueueEntry[T], now_s: float) -> Offer[T]:
        """Queue a new request, or refuse it."""
        if entry.deadline_s is not None and self._deadlines.late(entry, entry.deadline_s, now_s):
            return self._refused(Refusal.DEADLINE, now_s)
        batcher = self.batcher
        refusal = self._over_caps(entry) if batcher.items else None
        if refusal is None:
            batcher.add(entry)
            return ACCEPTED
        return self._make_room(entry, refusal, now_s)

    def withdraw(self, key: int) -> bool:
        """Remove a request; return whether it still waited."""
        return self.batcher.withdraw(key) is not None

    def record_answer(self, entry: QueueEntry[T], now_s: float, *, answered: bool) -> None:
        """Record that an accepted request with a deadline was answered or expired."""
        if entry.deadline_s is None:
            return
        if answered:
            self._prediction.record_answer(now_s)
        self._deadlines.record(entry, entry.deadline_s, now_s, answered=answered)

    # ---- the devices

    def seed(self, cost: CostModel, padded_batch: Callable[[int], int] | None) -> None:
        """Start with the devices' warm-up times."""
        self._prediction.seed(cost, padded_batch)

    def remove_device(self, device: int) -> None:
        """Remove a lost device."""
        self._prediction.pool.remove(device)

    def next_device(self, now_s: float) -> int:
        """Return the device that is expected to take the next batch."""
        return self._prediction.pool.next(now_s)

    def seal(self, now_s: float, device: int = 0) -> SealedBatch[T]:
        """Return the next batch for a free device."""
        self._prediction.price_for_batches(now_s)
        sealed = self.batcher.seal(now_s)
        if sealed.batch:
            seconds = self.batcher.prices.batch_s(sealed.items, sealed.length)
            self._prediction.pool.assign(device, now_s, seconds)
        elif sealed.expired:
            self._prediction.doubt(now_s)
        return sealed

    def record_batch(
        self,
        sealed: SealedBatch[T],
        began_s: float,
        seconds: float,
        *,
        whole: bool,
        device: int = 0,
        failed: Sequence[QueueEntry[T]] = (),
    ) -> None:
        """Record a batch. `whole`: it succeeded in one piece, so that its duration is typical.

        `failed` are those that it could not answer; their tenants pay for its seconds.
        """
        arrived_s = sealed.batch[0].arrived_s if sealed.batch else None
        self._prediction.pool.complete(device, began_s, seconds, arrived_s=arrived_s)
        self._prediction.record_batch(sealed, seconds, whole=whole)
        if failed:
            self.batcher.failed(sealed, failed, began_s + seconds, seconds)
        elif sealed.batch:
            self.batcher.succeeded(sealed.batch)

    # ---- what is predicted

    @property
    def cost(self) -> CostModel | None:
        """Batch costs; None until warm-up has timed some."""
        return self._prediction.cost

    @property
    def overhead_s(self) -> EwmaSpread:
        """From the end of a batch to the response."""
        return self._prediction.overhead_s

    @property
    def fastest_s(self) -> float:
        """The shortest batch ever: no answer comes sooner. 0: none was executed."""
        return self._prediction.fastest_s

    def margin(self, priority: int) -> DeadlineMargin:
        """Return the margin at a priority."""
        return self._deadlines.margin(priority)

    def delay_s(self, now_s: float) -> float | None:
        """Return the predicted wait of a request arriving now; None if nothing is known."""
        return self._prediction.delay_s(now_s)

    def saturation(self, now_s: float) -> float | None:
        """Return the predicted time to the response over the recent mean deadline."""
        delay_s, budget_s = self.delay_s(now_s), self._deadlines.budget_s
        if delay_s is None or budget_s is None:
            return None
        prediction = self._prediction
        return (delay_s + prediction.own_s(1, 0) + 2.0 * prediction.overhead_s.high) / budget_s

    def _over_caps(self, entry: QueueEntry[T]) -> Refusal | None:
        batcher = self.batcher
        return over_caps(entry.items, entry.size, batcher.items, batcher.size, self.caps)

    def _make_room(self, entry: QueueEntry[T], full: Refusal, now_s: float) -> Offer[T]:
        refusal: Refusal | None = full
        evicted: list[QueueEntry[T]] = []
        while refusal is not None:
            last = self.batcher.outranked(entry)
            if last is None:
                for one in reversed(evicted):
                    self.batcher.add(one)
                return self._refused(refusal, now_s)
            self.batcher.withdraw(last.key)
            evicted.append(last)
            refusal = self._over_caps(entry)
        self.batcher.add(entry)
        return Offer(None, self._retry_after_s(now_s), tuple(evicted))

    def _refused(self, refusal: Refusal, now_s: float) -> Offer[T]:
        return Offer(refusal, self._retry_after_s(now_s))

    def _retry_after_s(self, now_s: float) -> int:
        return retry_after_s(self.delay_s(now_s), self._chance())


ACCEPTED: Offer[Any] = Offer()
