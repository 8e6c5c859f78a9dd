"""PURE. What to execute after a failed batch, how large batches may be, when to probe the engine.

Of a batch that fails, one request may be the cause. Halves are tried, then halves of those that
fail, until it stands alone: one poisoned request among n costs at most 2 * log2(n) further
executions. A batch for which the device has no memory is tried in halves once, without more ado.
Where failure follows on failure, it may be the device and not the requests: the one request that
warm-up has seen answered decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

T = TypeVar("T")

PROBE_AFTER = 3
"""Failures in a row. A batch with one poisoned request never shows them: of every two halves, one
is answered."""
RECOVERY_BATCHES = 100
"""Batches that fit, after which the budget grows a little."""
RECOVERY_SHARE = 0.125
"""Of the full budget: eight such steps lead back from nothing to all."""


class Failure(StrEnum):
    """Why a batch was not answered."""

    ERROR = "error"
    """Something raised, or gave what it had not declared."""
    MEMORY = "memory"
    """The device has no room for a batch of this size."""


Steps = Generator[Sequence[T], Failure | None, list[T]]


def isolate(batch: Sequence[T], failure: Failure) -> Steps[T]:
    """Yield what to execute next; take how that failed, or None; return who fails for good.

    Everything that was yielded and did not fail is answered. `batch` has failed once already.
    """
    failed: list[T] = []
    suspects = deque([(batch, failure, False)])
    while suspects:
        part, how, last_chance = suspects.popleft()
        if len(part) == 1 or last_chance:
            failed += part
            continue
        middle = (len(part) + 1) // 2
        for half in (part[:middle], part[middle:]):
            outcome = yield half
            if outcome is not None:
                suspects.append((half, outcome, outcome is how is Failure.MEMORY))
    return failed


class FailureStreak(NamedTuple):
    """Failures without an answer in between; time is not looked at."""

    in_a_row: int = 0

    def after(self, failure: Failure | None) -> FailureStreak:
        """One more execution. Lack of memory speaks of the batch's size, and is not counted."""
        if failure is Failure.MEMORY:
            return self
        return NO_FAILURES if failure is None else FailureStreak(self.in_a_row + 1)

    @property
    def due(self) -> bool:
        """Whether to try the request that is known to be good."""
        return self.in_a_row >= PROBE_AFTER


NO_FAILURES = FailureStreak()


class Budget(NamedTuple):
    """Cells (items times padded length) that one batch may have.

    Halved to what did not fit, and slowly back: lack of memory may have been that of a neighbour.
    """

    full: int
    cells: int
    fitted: int = 0
    """Batches since the last change, all of which fitted."""

    @classmethod
    def of(cls, full: int) -> Budget:
        """All that the warmed shapes allow."""
        return cls(full, full)

    @property
    def share(self) -> float:
        """Of the full budget; 1 unless memory was short."""
        return self.cells / self.full

    def items(self, length: int) -> int:
        """Items of this padded length (0: none) in one batch; one is always tried."""
        return max(1, self.cells // max(1, length))

    def after(self, cells: int, failure: Failure | None) -> Budget:
        """One more execution, of so many cells."""
        if failure is Failure.MEMORY:
            return Budget(self.full, max(1, min(self.cells, cells) // 2))
        if failure is not None or self.cells == self.full:
            return self
        if self.fitted + 1 < RECOVERY_BATCHES:
            return self._replace(fitted=self.fitted + 1)
        step = max(1, int(self.full * RECOVERY_SHARE))
        return Budget(self.full, min(self.full, self.cells + step))


def portions(sizes: Sequence[int], most: int) -> list[slice]:
    """Cut a batch, given as the items of each request, into runs of at most `most` items.

    A request that alone has more is a run of its own.
    """
    runs: list[slice] = []
    begin = items = 0
    for at, size in enumerate(sizes):
        if at > begin and items + size > most:
            runs.append(slice(begin, at))
            begin, items = at, 0
        items += size
    return [*runs, slice(begin, len(sizes))]
