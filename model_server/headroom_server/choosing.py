"""PURE. Which of those in line make the next batch.

The first in line sets the padded length. Those of the same length follow, in order; the first that
does not fit closes the batch, so that a wide request is never overtaken. Then shorter ones fill it,
the longest first, where padding them costs less than a batch of their own would.

Nobody starves: the first in line always goes, and takes the oldest of its length with it. Behind
n_l entries of each length l, one waits for the sum of ceil(n_l / largest batch) batches at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from headroom_server.cost_model import CostModel
from headroom_server.entries import Close, Entry

T = TypeVar("T")

SCAN_BATCHES = 32
"""How many batches' worth of other lengths are looked through for company."""


class Prices(NamedTuple):
    """What a batch takes, padded as the device pads it; without a cost model nothing is known."""

    max_batch_size: int
    cost: CostModel | None = None
    padded_batch: Callable[[int], int] | None = None
    """The warmed batch size that holds so many items; None where every size is warm."""

    def batch_s(self, items: int, length: int) -> float:
        """Seconds; 0 where nothing is known."""
        if self.cost is None:
            return 0.0
        fit = self.cost.fits.get(length) or self.cost.fit(length)
        if self.padded_batch is not None:
            items = self.padded_batch(items)
        return fit.fixed_s + fit.per_item_s * items

    def full_s(self, length: int) -> float:
        """Seconds of a full batch."""
        return self.batch_s(self.max_batch_size, length)

    def padded(self, items: int) -> int:
        """The size in which the device executes so many items."""
        return items if self.padded_batch is None else self.padded_batch(items)

    def too_late(self, entry: Entry[T], now_s: float) -> bool:
        """Whether the deadline has passed, or cannot be met even alone."""
        if self.cost is None:
            return entry.due_s < now_s
        return entry.due_s < now_s + self.batch_s(entry.items, entry.length)


class Choice(NamedTuple, Generic[T]):
    """A batch in order of service, why it is closed, and those for whom any would be too late."""

    batch: list[Entry[T]]
    close: Close
    too_late: list[Entry[T]]


def choose(
    order: Iterable[Entry[T]], now_s: float, prices: Prices, company: Callable[[int], int]
) -> Choice[T]:
    """The next batch of those in line; `company` tells how many items of a length wait."""
    batch: list[Entry[T]] = []
    others: list[Entry[T]] = []
    too_late: list[Entry[T]] = []
    room, close = prices.max_batch_size, Close.IDLE
    for entry in order:
        if entry.deadline_s is not None and prices.too_late(entry, now_s):
            too_late.append(entry)
        elif batch and room and entry.length != batch[0].length:
            others.append(entry)
            if len(others) >= SCAN_BATCHES * prices.max_batch_size:
                break
        elif entry.items > room:
            close = Close.FULL
            break
        else:
            batch.append(entry)
            room -= entry.items
    if not room:
        close = Close.FULL
    elif others and close is not Close.FULL:
        chosen = sorted(_fill(batch[0].length, room, others, prices, company))
        batch += [others[at] for at in chosen]
        close = close if len(chosen) == len(others) else Close.BUCKET
    return Choice(batch, close, too_late)


def _fill(
    length: int,
    room: int,
    others: list[Entry[T]],
    prices: Prices,
    company: Callable[[int], int],
) -> Iterator[int]:
    """Indices of the shorter ones for whom there is room and whom padding pays."""
    items = prices.max_batch_size - room
    shorter = [at for at, entry in enumerate(others) if entry.length < length]
    for at in sorted(shorter, key=lambda at: -others[at].length):
        entry = others[at]
        together = items + entry.items
        if together > prices.max_batch_size:
            return
        more_s = prices.batch_s(together, length) - prices.batch_s(items, length)
        own = min(company(entry.length), prices.max_batch_size)
        if more_s <= prices.batch_s(own, entry.length) * entry.items / own:
            items = together
            yield at
