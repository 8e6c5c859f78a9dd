"""PURE. The queue and its batches: work-conserving, built around the first request.

The device requests a batch whenever it is free and gets what fits now; nothing waits for more
requests unless a maximum wait is set. Order of service:

1. the priority whose oldest entry is most urgent: a level of priority is worth
   `AGEING_S` of waiting, so that no request starves;
2. within a priority, tenants in equal shares; within a tenant, in order of arrival;
3. a more urgent priority whose next tenant received less goes first: entries that grew old behind
   those of their own tenant must not delay it.

`batch_selection` decides which requests join the first one.

Entries whose deadline has passed, or cannot be met any more, are never executed; they are returned
with the batch. Each entry leaves exactly once: in a batch, as expired, or withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from headroom_server.scheduling.batch_selection import Prices, choose
from headroom_server.scheduling.deadlines import fitting, in_time
from headroom_server.scheduling.entries import CloseReason, QueueEntry, SealedBatch
from headroom_server.scheduling.tenant_queue import TenantQueue
from headroom_server.scheduling.tenant_shares import KEPT_TENANTS, TenantShares

__all__ = ["Batcher", "CloseReason", "QueueEntry", "SealedBatch"]

T = TypeVar("T")

AGEING_S = 1.0
HOLD_SLACK = 1.1
"""A batch that waits for more requests is closed 10 % of its time before it would be late."""


class WorkAhead(NamedTuple):
    """Batches and their total seconds; fractions if lengths or priorities differ."""

    batches: float
    seconds: float


class Batcher(Generic[T]):
    """Waiting entries. Without a cost model only a passed deadline is too late."""

    def __init__(self, max_batch_size: int, *, max_wait_s: float = 0.0) -> None:
        """Raise ValueError for a batch size below 1."""
        if max_batch_size < 1:
            raise ValueError(f"the maximum batch size must be at least 1; got {max_batch_size}")
        self.max_batch_size = max_batch_size
        self.max_wait_s = max_wait_s
        self.prices = Prices(max_batch_size)
        self.size = 0
        """Bytes of all waiting entries."""
        self.items = 0
        """Items of all waiting entries."""
        self._queues: dict[int, TenantQueue[T]] = {}
        self._received = TenantShares()
        """Items that tenants received, of all priorities."""

    def __len__(self) -> int:
        """Return the number of waiting entries."""
        return sum(map(len, self._queues.values()))

    def oldest_s(self) -> float | None:
        """Return the earliest arrival of a waiting entry; None if none waits."""
        return min((queue.oldest_s for queue in self._queues.values() if queue), default=None)

    def add(self, entry: QueueEntry[T]) -> None:
        """Queue an entry.

        Raises:
            ValueError: no batch can hold it, or its key is already queued at its priority.
        """
        if not 1 <= entry.items <= self.max_batch_size:
            raise ValueError(
                f"an entry must have 1 to {self.max_batch_size} items; got {entry.items}"
            )
        queue = self._queues.get(entry.priority)
        if queue is None:
            queue = self._queues[entry.priority] = TenantQueue()
        queue.add(entry)
        self.items += entry.items
        self.size += entry.size

    def withdraw(self, key: int) -> QueueEntry[T] | None:
        """Remove an entry from the queue; None if it no longer waits."""
        queue = self._queue_of(key)
        if queue is None:
            return None
        return self._left(queue.withdraw(key))

    def outranked(self, newcomer: QueueEntry[T]) -> QueueEntry[T] | None:
        """Return the last entry if the newcomer would be served before it by priority or share."""
        last = max((priority for priority, queue in self._queues.items() if queue), default=-1)
        if last < newcomer.priority:
            return None
        queue = self._queues[last]
        place = queue.order[-1]
        ahead = place.level - queue.next_level(newcomer.tenant)
        if last > newcomer.priority or ahead > self.max_batch_size:
            return place.entry
        return None

    def ahead(self, newcomer: QueueEntry[Any]) -> WorkAhead:
        """Return the batches before the newcomer's."""
        own, batches, seconds, size = newcomer.items - 1.0, 0.0, 0.0, self.max_batch_size
        for priority, queue in self._queues.items():
            share = self._share_ahead(queue, priority, newcomer) if queue else 0.0
            for length, items in queue.items.items() if share else ():
                if length == newcomer.length:
                    own += share * items
                elif items:
                    batches += share * items / size
                    seconds += share * items / size * self.prices.full_s(length)
        full = own // size
        return WorkAhead(batches + full, seconds + full * self.prices.full_s(newcomer.length))

    def peek(self, now_s: float) -> SealedBatch[T]:
        """Return about what `seal` would give now, without removing it."""
        choice = choose(self._in_order(), now_s, self.prices, self._waiting_items)
        return SealedBatch(tuple(choice.batch), (), choice.length)

    def seal(self, now_s: float) -> SealedBatch[T]:
        """Remove and return the next batch. Empty only if nothing may be executed now."""
        again_s = self._held_until_s() if self.max_wait_s else None
        if again_s is not None and now_s < again_s:
            return SealedBatch((), (), again_s=again_s)
        expired: list[QueueEntry[T]] = []
        longer = True
        while True:
            batch, length, close, too_late = choose(
                self._in_order(), now_s, self.prices, self._waiting_items, longer=longer
            )
            if too_late:
                expired += map(self._withdrawn, too_late)
            if not batch or self.prices.cost is None or in_time(batch, length, now_s, self.prices):
                break
            if length > batch[0].length:
                longer = False
                continue
            front, hopeless = fitting(batch, now_s, self.prices, alone=len(batch) == len(self))
            if not hopeless:
                close = CloseReason.DEADLINE
                del batch[front:]
                break
            expired += [self._withdrawn(batch[at]) for at in hopeless]
        tenants = sum(queue.tenants for queue in self._queues.values())
        for entry in batch:
            self._queues[entry.priority].serve(entry.key)
            self._received.serve(entry.tenant, entry.items, tenants)
            self.items -= entry.items
            self.size -= entry.size
        if len(self._received) > KEPT_TENANTS:
            self._received.forget({one.tenant for queue in self._queues.values() for one in queue})
        return SealedBatch(tuple(batch), tuple(expired), length, close)

    def _waiting_items(self, length: int) -> int:
        return sum(queue.items.get(length, 0) for queue in self._queues.values())

    def _in_order(self) -> Iterator[QueueEntry[T]]:
        queues = [queue for queue in self._queues.values() if queue.order]
        if len(queues) < 2:
            return iter(queues[0] if queues else ())
        by_urgency = sorted(
            (queue.oldest_s + AGEING_S * priority, priority)
            for priority, queue in self._queues.items()
            if queue.order
        )
        order = [priority for _, priority in by_urgency]
        first, received = order[0], self._next_received(order[0])
        for priority in sorted(one for one in order if one < first):
            less = self._next_received(priority)
            if less < received:
                first, received = priority, less
        order.remove(first)
        return chain.from_iterable(self._queues[priority] for priority in (first, *order))

    def _next_received(self, priority: int) -> float:
        """Return what the tenant received whose entry is the first of a priority."""
        return self._received.of(self._queues[priority].order[0].entry.tenant)

    def _share_ahead(
        self, queue: TenantQueue[T], priority: int, newcomer: QueueEntry[Any]
    ) -> float:
        if priority == newcomer.priority:
            return queue.ahead(newcomer.tenant) / len(queue)
        ahead_s = (newcomer.priority - priority) * AGEING_S
        if queue.oldest_s >= newcomer.arrived_s + ahead_s:
            return 0.0
        return float(priority < newcomer.priority or not self._passes(newcomer, priority))

    def _passes(self, newcomer: QueueEntry[Any], priority: int) -> bool:
        """Return whether a newcomer goes before a less urgent priority that is older."""
        own = self._queues.get(newcomer.priority)
        waiting = own.next_level(newcomer.tenant) - own.level if own else 0
        return self._received.of(newcomer.tenant) + waiting < self._next_received(priority)

    def _held_until_s(self) -> float | None:
        oldest_s = self.oldest_s()
        if oldest_s is None or self.items >= self.max_batch_size:
            return None
        until_s = oldest_s + self.max_wait_s
        for entry in chain.from_iterable(self._queues.values()):
            need_s = HOLD_SLACK * self.prices.batch_s(self.items, entry.length)
            until_s = min(until_s, entry.due_s - need_s)
        return until_s

    def _queue_of(self, key: int) -> TenantQueue[T] | None:
        for queue in self._queues.values():
            if key in queue:
                return queue
        return None

    def _withdrawn(self, entry: QueueEntry[T]) -> QueueEntry[T]:
        return self._left(self._queues[entry.priority].withdraw(entry.key))

    def _left(self, entry: QueueEntry[T]) -> QueueEntry[T]:
        self.items -= entry.items
        self.size -= entry.size
        return entry
