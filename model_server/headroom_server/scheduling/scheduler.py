"""PURE. The scheduling decisions: admission, order of service, and learning from batches.

The scheduler gets every event with its time, and has neither clock nor thread nor random numbers of
its own: the server and simulations drive it alike.

The predicted finish of a new request is: the remaining work of the devices, the batches before it
in order of service, each on the device that is free first, its own batch at the 95th percentile of
its duration, and the overhead from the end of a batch to the response. It is accepted if that is
within the usable share of its deadline.

A prediction that refuses everything would never be tested: after `PROBE_S` of refusals without a
batch, requests are accepted as if nothing were known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from headroom_server.scheduling.admission import Caps, Refusal, over_caps, retry_after_s
from headroom_server.scheduling.batch_selection import Prices
from headroom_server.scheduling.batching import Batcher
from headroom_server.scheduling.cost_model import CostModel, EwmaSpread, Timing
from headroom_server.scheduling.deadline_margin import DeadlineMargin
from headroom_server.scheduling.deferred_updates import DeferredUpdates
from headroom_server.scheduling.device_pool import DevicePool
from headroom_server.scheduling.entries import QueueEntry, SealedBatch

T = TypeVar("T")

PROBE_S = 1.0
PROBE_BATCHES = 5.0
"""A probe may miss its deadline: it takes at most a fifth of the device's time."""
HICCUP_S = 0.002
"""One overhead counts as at most twice the usual plus this: an outlier must not cause refusals."""
BUDGET_WEIGHT = 0.02


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
        self._updates = DeferredUpdates()
        self.overhead_s = EwmaSpread()
        """From the end of a batch to the response."""
        self.budget_s: float | None = None
        """Recent mean time from arrival to deadline; None before any request had one."""
        self._chance = chance
        self._pool = DevicePool(devices)
        self._margins: dict[int, DeadlineMargin] = {}
        self._doubted_since_s: float | None = None
        self.fastest_s = 0.0
        """The shortest batch ever: no answer comes sooner. 0: none was executed."""

    # ---- requests

    def offer(self, entry: QueueEntry[T], now_s: float) -> Offer[T]:
        """Queue a new request, or refuse it."""
        if entry.deadline_s is not None and self._late(entry, entry.deadline_s, now_s):
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
            overhead_s = now_s - self._pool.ended_s
            most_s = HICCUP_S + 2.0 * self.overhead_s.high
            self.overhead_s = self.overhead_s.follow(min(most_s, overhead_s))
        margin = self.margin(entry.priority)
        if self._at_own_risk(entry, entry.deadline_s, margin):
            return
        self._margins[entry.priority] = margin.record(
            missed=not answered or now_s > entry.deadline_s,
            arrived_s=entry.arrived_s,
            now_s=now_s,
        )

    # ---- the devices: alike, so that what one is seen to take is expected of all

    def seed(self, cost: CostModel, padded_batch: Callable[[int], int] | None) -> None:
        """Start with the devices' warm-up times."""
        self._updates.begin(cost)
        self.batcher.prices = Prices(self.batcher.max_batch_size, cost, padded_batch)

    def remove_device(self, device: int) -> None:
        """Remove a lost device."""
        self._pool.remove(device)

    def next_device(self, now_s: float) -> int:
        """Return the device that is expected to take the next batch."""
        return self._pool.next(now_s)

    def seal(self, now_s: float, device: int = 0) -> SealedBatch[T]:
        """Return the next batch for a free device."""
        self._price(self._updates.applied, now_s)
        sealed = self.batcher.seal(now_s)
        if sealed.batch:
            seconds = self.batcher.prices.batch_s(sealed.items, sealed.length)
            self._pool.assign(device, now_s, seconds)
        elif sealed.expired and self._doubted_since_s is None:
            self._doubted_since_s = now_s
        return sealed

    def record_batch(
        self,
        sealed: SealedBatch[T],
        began_s: float,
        seconds: float,
        *,
        whole: bool,
        device: int = 0,
    ) -> None:
        """Record a batch. `whole`: it succeeded in one piece, so that its duration is typical."""
        arrived_s = sealed.batch[0].arrived_s if sealed.batch else None
        self._pool.complete(device, began_s, seconds, arrived_s=arrived_s)
        updates = self._updates
        if not whole or updates.applied is None or seconds <= 0.0:
            self._doubted_since_s = None
            return
        if seconds < self.fastest_s or not self.fastest_s:
            self.fastest_s = seconds
        timing = Timing(self.batcher.prices.padded(sealed.items), seconds, sealed.length)
        if self._doubted_since_s is not None:
            cost = updates.current_for_admission()
            assert cost is not None
            if seconds > cost.batch_s(timing.items, timing.length) / 2:
                self._doubted_since_s = None  # else the doubt was right: the next probes at once
        updates.add(timing)

    # ---- what is predicted

    @property
    def cost(self) -> CostModel | None:
        """Batch costs; None until warm-up has timed some."""
        return self._updates.current()

    def margin(self, priority: int) -> DeadlineMargin:
        """Return the margin at a priority."""
        return self._margins.get(priority, FULL)

    def delay_s(self, now_s: float) -> float | None:
        """Return the predicted wait of a request arriving now; None if nothing is known."""
        cost = self.cost
        if cost is None:
            return None
        self._price(cost, now_s)
        newcomer: QueueEntry[None] = QueueEntry(-1, 1, now_s, None, None)
        return self._begins_in_s(newcomer, now_s)

    def saturation(self, now_s: float) -> float | None:
        """Return the predicted time to the response over the recent mean deadline."""
        delay_s = self.delay_s(now_s)
        if delay_s is None or self.budget_s is None:
            return None
        return (delay_s + self._own_s(1, 0) + 2.0 * self.overhead_s.high) / self.budget_s

    def _late(self, entry: QueueEntry[T], deadline_s: float, now_s: float) -> bool:
        budget_s = deadline_s - entry.arrived_s
        usual_s = budget_s if self.budget_s is None else self.budget_s
        self.budget_s = usual_s + BUDGET_WEIGHT * (budget_s - usual_s)
        if self._price(self._updates.current_for_admission(), now_s) is None:
            return deadline_s < now_s
        if self._pool.idle and not self.batcher.items:
            # refusing would leave a device idle and teach nothing: only a hopeless request is
            # refused
            return self._doubt(self.batcher.prices.too_late(entry, now_s), now_s)
        wait_s = self._begins_in_s(entry, now_s) + self._own_s(entry.items, entry.length)
        margin = self.margin(entry.priority)
        # the delay before the request was seen is assumed to equal the delay of its response
        finish_s = now_s + wait_s + 2.0 * self.overhead_s.high
        late = finish_s > margin.latest_s(entry.arrived_s, deadline_s)
        return self._doubt(late, now_s)

    def _at_own_risk(self, entry: QueueEntry[T], deadline_s: float, margin: DeadlineMargin) -> bool:
        """Return whether only an idle device accepts it: its miss says nothing about admission."""
        alone_s = self.batcher.prices.batch_s(entry.items, entry.length)
        soonest_s = entry.arrived_s + alone_s + 2.0 * self.overhead_s.high
        return soonest_s > margin.latest_s(entry.arrived_s, deadline_s)

    def _doubt(self, late: bool, now_s: float) -> bool:
        if late and self._doubted_since_s is None:
            self._doubted_since_s = now_s
        return late

    def _price(self, cost: CostModel | None, now_s: float) -> CostModel | None:
        """Update the queue's cost model; None while the predictions are in doubt."""
        since_s, prices = self._doubted_since_s, self.batcher.prices
        if cost is not None and since_s is not None and self._pool.idle:
            full_s = cost.batch_s(prices.padded(prices.max_batch_size))
            if now_s - since_s >= max(PROBE_S, PROBE_BATCHES * full_s):
                cost = None
        if prices.cost is not cost:
            self.batcher.prices = prices._replace(cost=cost)
        return cost

    def _begins_in_s(self, newcomer: QueueEntry[Any], now_s: float) -> float:
        if not self.batcher.items:
            return self._pool.starts_in_s(now_s)
        batches, seconds = self.batcher.ahead(newcomer)
        return self._pool.starts_in_s(now_s, batches, seconds + batches * self._pool.gap_s)

    def _own_s(self, items: int, length: int) -> float:
        prices = self.batcher.prices
        together = min(prices.max_batch_size, self.batcher.items + items)
        cost = self._updates.applied
        tail = cost.tail if cost else 0.0
        return (1.0 + tail) * prices.batch_s(together, length)

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


FULL = DeadlineMargin()
ACCEPTED: Offer[Any] = Offer()
