"""The waiting entries of all priorities, in order of service. Pure.

1. The priority whose oldest entry is most urgent goes first: a level of priority is worth
   `AGEING_S` of waiting, so that no request starves.
2. Within a priority, tenants get equal shares of the device's time; within a tenant, entries go in
   order of arrival.
3. A more urgent priority whose next tenant received less is served before that one: entries that
   grew old behind others of their own tenant must not delay it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Generic, TypeVar

from headroom_server.scheduling.entries import QueueEntry
from headroom_server.scheduling.tenant_queue import TenantQueue
from headroom_server.scheduling.tenant_shares import KEPT_TENANTS, TenantShares

T = TypeVar("T")

AGEING_S = 1.0


class PriorityQueues(Generic[T]):
    """A queue per priority, and the work that each tenant has received."""

    __slots__ = ("_queues", "_received", "weights")

    def __init__(self) -> None:
        self._queues: dict[int, TenantQueue[T]] = {}
        self._received = TenantShares()
        """Work that tenants received, of all priorities."""
        self.weights: Mapping[int, float] = {}
        """The work of one item per length; 1 where none is known."""

    def __len__(self) -> int:
        """Return the number of waiting entries."""
        return sum(map(len, self._queues.values()))

    def __iter__(self) -> Iterator[QueueEntry[T]]:
        """Return the waiting entries, priority by priority."""
        return chain.from_iterable(self._queues.values())

    def oldest_s(self) -> float | None:
        """Return the earliest arrival of a waiting entry; None if none waits."""
        return min((queue.oldest_s for queue in self._queues.values() if queue), default=None)

    def items_of(self, length: int) -> int:
        """Return the waiting items of a padded length."""
        return sum(queue.items.get(length, 0) for queue in self._queues.values())

    def add(self, entry: QueueEntry[T]) -> None:
        """Queue an entry.

        Raises:
            ValueError: its key is already queued at its priority.
        """
        queue = self._queues.get(entry.priority)
        if queue is None:
            queue = self._queues[entry.priority] = TenantQueue()
        queue.add(entry, entry.items * self._weight(entry.length))

    def withdraw(self, key: int) -> QueueEntry[T] | None:
        """Remove an entry from its queue; None if it does not wait."""
        for queue in self._queues.values():
            if key in queue:
                return queue.withdraw(key)
        return None

    def withdraw_waiting(self, entry: QueueEntry[T]) -> QueueEntry[T]:
        """Remove an entry that waits."""
        return self._queues[entry.priority].withdraw(entry.key)

    def serve(self, batch: list[QueueEntry[T]]) -> None:
        """Remove the entries of a batch, and charge their tenants."""
        tenants = sum(queue.tenants for queue in self._queues.values())
        for entry in batch:
            work = self._queues[entry.priority].serve(entry.key).work
            self._received.serve(entry.tenant, work, tenants)
        if len(self._received) > KEPT_TENANTS:
            self._received.forget({entry.tenant for entry in self})

    def charge(self, entry: QueueEntry[T], work: float) -> None:
        """Charge the tenant of an entry that was served for more work than was expected."""
        self._queues[entry.priority].charge(entry.tenant, work)
        self._received.correct(entry.tenant, work)

    def in_order(self) -> Iterator[QueueEntry[T]]:
        """Return the waiting entries in order of service."""
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

    def outranked(self, newcomer: QueueEntry[T], max_batch_size: int) -> QueueEntry[T] | None:
        """Return the last entry if the newcomer would be served before it.

        It would by priority, or because its tenant has received more than a largest batch less.
        """
        last = max((priority for priority, queue in self._queues.items() if queue), default=-1)
        if last < newcomer.priority:
            return None
        queue = self._queues[last]
        place = queue.order[-1]
        ahead = place.level - queue.next_level(newcomer.tenant)
        batch = max_batch_size * self._weight(place.entry.length)
        return place.entry if last > newcomer.priority or ahead > batch else None

    def items_ahead(self, newcomer: QueueEntry[Any]) -> Iterator[tuple[int, float]]:
        """Yield padded lengths and how many items of each are served before the newcomer."""
        for priority, queue in self._queues.items():
            if priority == newcomer.priority:
                yield from queue.items_ahead(newcomer.tenant).items()
            elif queue and self._goes_first(queue, priority, newcomer):
                yield from queue.items.items()

    def _goes_first(self, queue: TenantQueue[T], priority: int, newcomer: QueueEntry[Any]) -> bool:
        """Return whether the entries of another priority are served before a newcomer."""
        ahead_s = (newcomer.priority - priority) * AGEING_S
        if queue.oldest_s >= newcomer.arrived_s + ahead_s:
            return False
        return priority < newcomer.priority or not self._passes(newcomer, priority)

    def _passes(self, newcomer: QueueEntry[Any], priority: int) -> bool:
        """Return whether a newcomer is served before a less urgent priority that is older."""
        own = self._queues.get(newcomer.priority)
        waiting = own.next_level(newcomer.tenant) - own.level if own else 0
        return self._received.of(newcomer.tenant) + waiting < self._next_received(priority)

    def _next_received(self, priority: int) -> float:
        """Return the service that the tenant of a priority's first entry has received."""
        return self._received.of(self._queues[priority].order[0].entry.tenant)

    def _weight(self, length: int) -> float:
        weights = self.weights
        if not weights:
            return 1.0
        found = weights.get(length)
        return max(weights.values()) if found is None else found
