"""Predicts when a new request would be answered, and whether that is in doubt. Pure.

The predicted finish of a new request is: the remaining work of the devices, the batches before it
in order of service, each on the device that is free first, its own batch at the 95th percentile of
its duration, and the overhead from the end of a batch to the response.

A prediction that refuses everything would never be tested: after `PROBE_S` of refusals without a
batch, requests are accepted as if nothing were known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headroom_server.scheduling.batch_selection import Prices
from headroom_server.scheduling.batching import Batcher
from headroom_server.scheduling.cost_model import CostModel, EwmaSpread, Timing
from headroom_server.scheduling.deferred_updates import DeferredUpdates
from headroom_server.scheduling.device_pool import DevicePool
from headroom_server.scheduling.entries import QueueEntry, SealedBatch

PROBE_S = 1.0
PROBE_BATCHES = 5.0
"""A probe may miss its deadline: it takes at most a fifth of the device's time."""
HICCUP_S = 0.002
"""One overhead counts as at most twice the usual plus this: an outlier must not cause refusals."""


class FinishPrediction:
    """Predicts the ends of batches from their cost and the times at which devices are free.

    The devices are alike: what one is seen to take is expected of all.
    """

    def __init__(self, batcher: Batcher[Any], devices: int) -> None:
        self._batcher = batcher
        self._updates = DeferredUpdates()
        self._doubted_since_s: float | None = None
        self.pool = DevicePool(devices)
        self.overhead_s = EwmaSpread()
        """From the end of a batch to the response."""
        self.fastest_s = 0.0
        """The shortest batch ever: no answer comes sooner. 0: none was executed."""

    # ---- what is learned

    def seed(self, cost: CostModel, padded_batch: Callable[[int], int] | None) -> None:
        """Start with the devices' warm-up times."""
        self._updates.begin(cost)
        self._batcher.weigh(cost)
        self._batcher.prices = Prices(self._batcher.max_batch_size, cost, padded_batch)

    def record_answer(self, now_s: float) -> None:
        """Learn the overhead of an answer that is written now."""
        overhead_s = now_s - self.pool.ended_s
        most_s = HICCUP_S + 2.0 * self.overhead_s.high
        self.overhead_s = self.overhead_s.follow(min(most_s, overhead_s))

    def record_batch(self, sealed: SealedBatch[Any], seconds: float, *, whole: bool) -> None:
        """Record a batch. `whole`: it succeeded in one piece, so that its duration is typical."""
        updates = self._updates
        if not whole or updates.applied is None or seconds <= 0.0:
            self._doubted_since_s = None
            return
        if seconds < self.fastest_s or not self.fastest_s:
            self.fastest_s = seconds
        timing = Timing(self._batcher.prices.padded(sealed.items), seconds, sealed.length)
        if self._doubted_since_s is not None:
            cost = updates.current_for_admission()
            assert cost is not None
            if seconds > cost.batch_s(timing.items, timing.length) / 2:
                self._doubted_since_s = None  # else the doubt was right: the next probes at once
        updates.add(timing)

    def doubt(self, now_s: float) -> None:
        """Record that a prediction refused a request; a batch ends the doubt."""
        if self._doubted_since_s is None:
            self._doubted_since_s = now_s

    # ---- what is predicted

    @property
    def cost(self) -> CostModel | None:
        """Batch costs; None until warm-up has timed some."""
        return self._updates.current()

    def price_for_admission(self, now_s: float) -> bool:
        """Update the queue's costs; return whether they are known and not in doubt."""
        return self._price(self._updates.current_for_admission(), now_s) is not None

    def price_for_batches(self, now_s: float) -> None:
        """Update the queue's costs without those of the last batches."""
        self._price(self._updates.applied, now_s)

    def delay_s(self, now_s: float) -> float | None:
        """Return the predicted wait of a request arriving now; None if nothing is known."""
        cost = self.cost
        if cost is None:
            return None
        self._price(cost, now_s)
        newcomer: QueueEntry[None] = QueueEntry(-1, 1, now_s, None, None)
        return self._begins_in_s(newcomer, now_s)

    def finish_s(self, entry: QueueEntry[Any], now_s: float) -> float:
        """Return when a request is answered that arrives now."""
        wait_s = self._begins_in_s(entry, now_s) + self.own_s(entry.items, entry.length)
        # the delay before the request was seen is assumed to equal the delay of its response
        return now_s + wait_s + 2.0 * self.overhead_s.high

    def own_s(self, items: int, length: int) -> float:
        """Return how long the batch of a new request takes, at the 95th percentile."""
        prices = self._batcher.prices
        together = min(prices.max_batch_size, self._batcher.items + items)
        cost = self._updates.applied
        tail = cost.tail if cost else 0.0
        return (1.0 + tail) * prices.batch_s(together, length)

    def _price(self, cost: CostModel | None, now_s: float) -> CostModel | None:
        """Update the queue's cost model; None while the predictions are in doubt."""
        since_s, prices = self._doubted_since_s, self._batcher.prices
        if cost is not None and since_s is not None and self.pool.idle:
            full_s = cost.batch_s(prices.padded(prices.max_batch_size))
            if now_s - since_s >= max(PROBE_S, PROBE_BATCHES * full_s):
                cost = None
        if prices.cost is not cost:
            self._batcher.prices = prices._replace(cost=cost)
        return cost

    def _begins_in_s(self, newcomer: QueueEntry[Any], now_s: float) -> float:
        if not self._batcher.items:
            return self.pool.starts_in_s(now_s)
        batches, seconds = self._batcher.ahead(newcomer)
        return self.pool.starts_in_s(now_s, batches, seconds + batches * self.pool.gap_s)
