"""PURE. The queue and its batches: work-conserving, first come first served, time an argument.

The device asks for a batch whenever it is free and gets what fits now; nothing waits for company. A
batch is the longest run of oldest entries whose items fit: the first entry that does not fit closes
it, so that a wide request is never overtaken. Entries whose deadline has passed are never executed;
they are reported beside the batch. Each entry leaves exactly once: in a batch, as expired, or
withdrawn.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Entry(NamedTuple, Generic[T]):
    """One waiting request: `items` rows of the batch, due by `deadline_s` if it has one."""

    key: int
    items: int
    arrived_s: float
    deadline_s: float | None
    work: T


class Sealed(NamedTuple, Generic[T]):
    """What the queue gave up: a batch in order of arrival, and what had expired before it."""

    batch: tuple[Entry[T], ...]
    expired: tuple[Entry[T], ...]

    @property
    def items(self) -> int:
        """Rows of the batch."""
        return sum(entry.items for entry in self.batch)


class Batcher(Generic[T]):
    """Waiting entries in order of arrival."""

    def __init__(self, max_batch_size: int) -> None:
        """Raise ValueError for a batch of nothing."""
        if max_batch_size < 1:
            raise ValueError(f"a batch holds at least 1 item; got {max_batch_size}")
        self.max_batch_size = max_batch_size
        self._waiting: OrderedDict[int, Entry[T]] = OrderedDict()
        self._items = 0

    def __len__(self) -> int:
        """Waiting entries."""
        return len(self._waiting)

    @property
    def items(self) -> int:
        """Items of all waiting entries."""
        return self._items

    def oldest_s(self) -> float | None:
        """When the first in line arrived; None if nobody waits."""
        return next(iter(self._waiting.values())).arrived_s if self._waiting else None

    def add(self, entry: Entry[T]) -> None:
        """Put an entry at the end of the line.

        Raises:
            ValueError: for an entry that no batch can hold, or a key that already waits.
        """
        if not 1 <= entry.items <= self.max_batch_size:
            raise ValueError(f"an entry has 1 to {self.max_batch_size} items; got {entry.items}")
        if entry.key in self._waiting:
            raise ValueError(f"an entry waits once; key {entry.key} already does")
        self._waiting[entry.key] = entry
        self._items += entry.items

    def withdraw(self, key: int) -> Entry[T] | None:
        """Take an entry out of the line; None if it no longer waits."""
        entry = self._waiting.pop(key, None)
        if entry is not None:
            self._items -= entry.items
        return entry

    def seal(self, now_s: float) -> Sealed[T]:
        """The next batch. Empty only if nothing that may still be executed waits."""
        batch: list[Entry[T]] = []
        expired: list[Entry[T]] = []
        room = self.max_batch_size
        while self._waiting:
            key, entry = next(iter(self._waiting.items()))
            if entry.deadline_s is not None and entry.deadline_s <= now_s:
                expired.append(entry)
            elif entry.items <= room:
                batch.append(entry)
                room -= entry.items
            else:
                break
            del self._waiting[key]
            self._items -= entry.items
        return Sealed(tuple(batch), tuple(expired))
