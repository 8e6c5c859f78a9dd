"""The queue and its batches: work-conserving, built around the first request. Pure.

The device requests a batch whenever it is free and gets what fits now; nothing waits for more
requests unless a maximum wait is set. `priority_queues` has the order of service, and
`batch_selection` decides which requests join the first one.

Entries whose deadline has passed, or cannot be met any more, are never executed; they are returned
with the batch. Each entry leaves exactly once: in a batch, as expired, or withdrawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from headroom_server.scheduling.batch_selection import Choice, Prices, choose
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.scheduling.deadlines import fitting, in_time
from headroom_server.scheduling.entries import CloseReason, QueueEntry, SealedBatch
from headroom_server.scheduling.priority_queues import PriorityQueues
from headroom_server.scheduling.suspects import Suspects

T = TypeVar("T")

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
        self._queues: PriorityQueues[T] = PriorityQueues()
        self._work_s = 0.0
        """Device time of one unit of work; 0: unknown."""
        self._suspects = Suspects(max_batch_size)

    def __len__(self) -> int:
        """Return the number of waiting entries."""
        return len(self._queues)

    def oldest_s(self) -> float | None:
        """Return the earliest arrival of a waiting entry; None if none waits."""
        return self._queues.oldest_s()

    def weigh(self, cost: CostModel) -> None:
        """Charge tenants for items by their cost in full batches of their length."""
        per_batch_s = {length: cost.batch_s(self.max_batch_size, length) for length in cost.fits}
        least_s = min(per_batch_s.values())
        self._work_s = least_s / self.max_batch_size
        self._queues.weights = {length: one / least_s for length, one in per_batch_s.items()}

    def add(self, entry: QueueEntry[T]) -> None:
        """Queue an entry.

        Raises:
            ValueError: no batch can hold it, or its key is already queued at its priority.
        """
        if not 1 <= entry.items <= self.max_batch_size:
            raise ValueError(
                f"an entry must have 1 to {self.max_batch_size} items; got {entry.items}"
            )
        self._queues.add(entry)
        self.items += entry.items
        self.size += entry.size

    def failed(
        self, sealed: SealedBatch[T], failed: Sequence[QueueEntry[T]], now_s: float, seconds: float
    ) -> None:
        """Let the tenants of entries that failed a batch pay for it, and for the further ones.

        `seconds` are those of the batches that isolated them.
        """
        self._suspects.failed([entry.tenant for entry in failed], now_s)
        if self._work_s:
            seconds += self.prices.batch_s(sealed.items, sealed.length)
            for entry in failed:
                self._queues.charge(entry, seconds / self._work_s / len(failed))

    def succeeded(self, batch: Sequence[QueueEntry[T]]) -> None:
        """Record a batch without a failure."""
        self._suspects.succeeded(batch[0].tenant)

    def withdraw(self, key: int) -> QueueEntry[T] | None:
        """Remove an entry from the queue; None if it no longer waits."""
        entry = self._queues.withdraw(key)
        return None if entry is None else self._left(entry)

    def outranked(self, newcomer: QueueEntry[T]) -> QueueEntry[T] | None:
        """Return the last entry if the newcomer would be served before it by priority or share."""
        return self._queues.outranked(newcomer, self.max_batch_size)

    def ahead(self, newcomer: QueueEntry[Any]) -> WorkAhead:
        """Return the batches before the newcomer's."""
        own, batches, seconds, size = newcomer.items - 1.0, 0.0, 0.0, self.max_batch_size
        for length, items in self._queues.items_ahead(newcomer):
            if length == newcomer.length:
                own += items
            elif items:
                batches += items / size
                seconds += items / size * self.prices.full_s(length)
        full = own // size
        return WorkAhead(batches + full, seconds + full * self.prices.full_s(newcomer.length))

    def peek(self, now_s: float) -> SealedBatch[T]:
        """Estimate the batch that `seal` would return now, without removing it."""
        choice = self._choose(now_s, longer=True)
        return SealedBatch(tuple(choice.batch), (), choice.length)

    def seal(self, now_s: float) -> SealedBatch[T]:
        """Remove and return the next batch. Empty only if nothing may be executed now."""
        again_s = self._held_until_s() if self.max_wait_s else None
        if again_s is not None and now_s < again_s:
            return SealedBatch((), (), again_s=again_s)
        expired: list[QueueEntry[T]] = []
        longer = True
        while True:
            batch, length, close, too_late = self._choose(now_s, longer=longer)
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
        self._queues.serve(batch)
        for entry in batch:
            self._left(entry)
        return SealedBatch(tuple(batch), tuple(expired), length, close)

    def _choose(self, now_s: float, *, longer: bool) -> Choice[T]:
        queues, apart = self._queues, self._suspects.apart(now_s)
        return choose(
            queues.in_order(),
            now_s,
            self.prices,
            queues.items_of,
            longer=longer,
            apart=apart,
        )

    def _held_until_s(self) -> float | None:
        oldest_s = self.oldest_s()
        if oldest_s is None or self.items >= self.max_batch_size:
            return None
        until_s = oldest_s + self.max_wait_s
        for entry in self._queues:
            need_s = HOLD_SLACK * self.prices.batch_s(self.items, entry.length)
            until_s = min(until_s, entry.due_s - need_s)
        return until_s

    def _withdrawn(self, entry: QueueEntry[T]) -> QueueEntry[T]:
        return self._left(self._queues.withdraw_waiting(entry))

    def _left(self, entry: QueueEntry[T]) -> QueueEntry[T]:
        self.items -= entry.items
        self.size -= entry.size
        return entry
