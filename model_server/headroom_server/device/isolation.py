"""Retries parts of a failed batch, bounds the batch size, and says when to probe the engine. Pure.

One request may have failed the batch. Halves are tried, then halves of those that fail, until it is
isolated: one bad request among n costs at most 2 * log2(n) further executions. A lack of memory is
handled alike: one request may need more than the device has, or the batch was too large, and then
smaller parts fit. If failures follow each other, the cause may be the device: the request that
succeeded in warm-up decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

T = TypeVar("T")

PROBE_AFTER = 3
"""Failures in a row that raise suspicion. A batch with one bad request never has that many: one of
every two halves succeeds."""
RECOVERY_BATCHES = 100
"""Successful batches after which the budget grows a little."""
RECOVERY_SHARE = 0.125
"""Share of the full budget per step: eight steps restore all of it."""


class Failure(StrEnum):
    """Reason why a batch was not answered."""

    ERROR = "error"
    """It raised an exception, or returned undeclared outputs."""
    MEMORY = "memory"
    """The device has no memory for a batch of this size."""


Steps = Generator[Sequence[T], Failure | None, list[T]]


def isolate(batch: Sequence[T]) -> Steps[T]:
    """Yield the next part to execute; get its failure or None; return the requests that fail.

    Every yielded part that did not fail is answered. `batch` has failed once already.
    """
    failed: list[T] = []
    suspects = deque([batch])
    while suspects:
        part = suspects.popleft()
        if len(part) == 1:
            failed += part
            continue
        middle = (len(part) + 1) // 2
        for half in (part[:middle], part[middle:]):
            if (yield half) is not None:
                suspects.append(half)
    return failed


class FailureStreak(NamedTuple):
    """Failures without a success in between, independent of time."""

    in_a_row: int = 0

    def after(self, failure: Failure | None) -> FailureStreak:
        """Add an execution. Lack of memory is due to the batch's size and is not counted."""
        if failure is Failure.MEMORY:
            return self
        return NO_FAILURES if failure is None else FailureStreak(self.in_a_row + 1)

    @property
    def due(self) -> bool:
        """Whether to probe with the request that succeeded in warm-up."""
        return self.in_a_row >= PROBE_AFTER


NO_FAILURES = FailureStreak()


class Budget(NamedTuple):
    """Cells (items times padded length) that one batch may have.

    Halved when memory is short, and slowly restored: a neighbour may have used the memory.
    """

    full: int
    cells: int
    fitted: int = 0
    """Batches that fitted since the last change."""

    @classmethod
    def of(cls, full: int) -> Budget:
        """Start with all that the warmed shapes allow."""
        return cls(full, full)

    @property
    def share(self) -> float:
        """Share of the full budget; 1 unless memory was short."""
        return self.cells / self.full

    def items(self, length: int) -> int:
        """Return the items of this padded length (0: none) per batch, at least one."""
        return max(1, self.cells // max(1, length))

    def after(self, cells: int, failure: Failure | None) -> Budget:
        """Add an execution with this many cells."""
        if failure is Failure.MEMORY:
            return Budget(self.full, max(1, min(self.cells, cells) // 2))
        if failure is not None or self.cells == self.full:
            return self
        if self.fitted + 1 < RECOVERY_BATCHES:
            return self._replace(fitted=self.fitted + 1)
        step = max(1, int(self.full * RECOVERY_SHARE))
        return Budget(self.full, min(self.full, self.cells + step))


def portions(sizes: Sequence[int], most: int) -> list[slice]:
    """Split a batch, given as items per request, into runs of at most `most` items.

    A request with more items is a run of its own.
    """
    runs: list[slice] = []
    begin = items = 0
    for at, size in enumerate(sizes):
        if at > begin and items + size > most:
            runs.append(slice(begin, at))
            begin, items = at, 0
        items += size
    return [*runs, slice(begin, len(sizes))]
