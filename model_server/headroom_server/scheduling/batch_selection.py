"""Selects the waiting requests of the next batch. Pure.

The first request always goes and sets the padded length. Those of the same length follow in order;
the first that does not fit closes the batch, so that a wide request is never overtaken. Then
shorter ones fill it, longest first, if padding them costs less than a batch of their own.

If longer ones wait too, the batch is padded to their length if that saves time now (a short one at
6 ms + 0.5 ms b and a long one at 6 ms + 2 ms b take 6.5 + 8 ms separately and 10 ms together), and
if it uses the device better than full batches of one length would.

Requests of tenants that failed batches lately share none with those of others (`suspects`).

There is no starvation: the first request always goes, so none waits for more batches than there are
requests before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from headroom_server.scheduling.cost_model import CostModel
from headroom_server.scheduling.entries import CloseReason, QueueEntry
from headroom_server.scheduling.suspects import NONE_APART, Apart

T = TypeVar("T")

SCAN_BATCHES = 32
"""Number of batches of other lengths that are searched for requests to add."""


class Prices(NamedTuple):
    """Predicted batch times, padded as on the device; 0 without a cost model."""

    max_batch_size: int
    cost: CostModel | None = None
    padded_batch: Callable[[int], int] | None = None
    """Returns the warmed batch size for a number of items; None if every size is warm."""

    def batch_s(self, items: int, length: int) -> float:
        """Return seconds; 0 if nothing is known."""
        if self.cost is None:
            return 0.0
        fit = self.cost.fits.get(length) or self.cost.fit(length)
        if self.padded_batch is not None:
            items = self.padded_batch(items)
        return fit.fixed_s + fit.per_item_s * items

    def full_s(self, length: int) -> float:
        """Return the seconds of a full batch."""
        return self.batch_s(self.max_batch_size, length)

    def share_s(self, entry: QueueEntry[T], waiting_items: Callable[[int], int]) -> float:
        """Return the cost of an entry in a batch of its own length with those that wait."""
        own = min(waiting_items(entry.length), self.max_batch_size)
        return self.batch_s(own, entry.length) * entry.items / own

    def use(self, length: int, batch: list[QueueEntry[T]]) -> float:
        """Return the utilization of the device: 1 if all have this length and the batch is full."""
        work_s = sum(entry.items * self.full_s(entry.length) for entry in batch)
        items = sum(entry.items for entry in batch)
        return work_s / self.max_batch_size / self.batch_s(items, length)

    def padded(self, items: int) -> int:
        """Return the batch size that the device executes for this many items."""
        return items if self.padded_batch is None else self.padded_batch(items)

    def too_late(self, entry: QueueEntry[T], now_s: float) -> bool:
        """Return whether the deadline has passed, or cannot be met even alone."""
        if self.cost is None:
            return entry.due_s < now_s
        return entry.due_s < now_s + self.batch_s(entry.items, entry.length)


class Choice(NamedTuple, Generic[T]):
    """A batch in order of service, why it is closed, and entries whose deadline cannot be met."""

    batch: list[QueueEntry[T]]
    length: int
    close: CloseReason
    too_late: list[QueueEntry[T]]


def choose(
    order: Iterable[QueueEntry[T]],
    now_s: float,
    prices: Prices,
    waiting_items: Callable[[int], int],
    *,
    longer: bool = True,
    apart: Apart = NONE_APART,
) -> Choice[T]:
    """Select the next batch; `waiting_items` returns how many items of a length wait.

    `longer`: it may be padded to more than the first one needs. Requests of the
    tenants `apart` share no batch with those of others.
    """
    batch: list[QueueEntry[T]] = []
    other_lengths: list[QueueEntry[T]] = []
    too_late: list[QueueEntry[T]] = []
    room, close = prices.max_batch_size, CloseReason.IDLE
    for entry in _together(order, apart) if apart.tenants else order:
        if entry.deadline_s is not None and prices.too_late(entry, now_s):
            too_late.append(entry)
        elif batch and room and entry.length != batch[0].length:
            other_lengths.append(entry)
            if len(other_lengths) >= SCAN_BATCHES * prices.max_batch_size:
                break
        elif entry.items > room:
            close = CloseReason.FULL
            break
        else:
            batch.append(entry)
            room -= entry.items
    length = batch[0].length if batch else 0
    if not room:
        close = CloseReason.FULL
    elif other_lengths and close is not CloseReason.FULL:
        waiting = len(batch) + len(other_lengths)
        length, batch = _best(batch, other_lengths, prices, waiting_items, longer=longer)
        close = CloseReason.IDLE if len(batch) == waiting else CloseReason.BUCKET
    return Choice(batch, length, close, too_late)


def _together(order: Iterable[QueueEntry[T]], apart: Apart) -> Iterator[QueueEntry[T]]:
    """Yield the entries that may share a batch with the first one."""
    first, room = None, apart.items
    for entry in order:
        suspected = entry.tenant in apart.tenants
        if first is None:
            first = suspected
        elif suspected is not first or (suspected and entry.items > room):
            continue
        room -= entry.items
        yield entry


def _best(
    batch: list[QueueEntry[T]],
    other_lengths: list[QueueEntry[T]],
    prices: Prices,
    waiting_items: Callable[[int], int],
    *,
    longer: bool,
) -> tuple[int, list[QueueEntry[T]]]:
    """Return the padded length that uses the device best, and the batch; the shortest of equals."""
    length = batch[0].length
    best = length, [*batch, *_fill(length, batch, other_lengths, prices, waiting_items)]
    if not longer or prices.cost is None:
        return best
    gain_s, most = _gain_s(*best, prices, waiting_items), prices.use(*best)
    for length in sorted({entry.length for entry in other_lengths if entry.length > length}):
        chosen = batch[:1]
        chosen += _fill(length, chosen, [*batch[1:], *other_lengths], prices, waiting_items)
        use = prices.use(length, chosen)
        if use > most and _gain_s(length, chosen, prices, waiting_items) > gain_s:
            best, most = (length, chosen), use
    return best


def _gain_s(
    length: int, batch: list[QueueEntry[T]], prices: Prices, waiting_items: Callable[[int], int]
) -> float:
    """Return the seconds saved compared with separate batches per length."""
    alone_s = sum(prices.share_s(entry, waiting_items) for entry in batch)
    return alone_s - prices.batch_s(sum(entry.items for entry in batch), length)


def _fill(
    length: int,
    batch: list[QueueEntry[T]],
    other_lengths: list[QueueEntry[T]],
    prices: Prices,
    waiting_items: Callable[[int], int],
) -> Iterator[QueueEntry[T]]:
    """Yield entries up to this length that fit and are worth padding, longest first."""
    items = sum(entry.items for entry in batch)
    for entry in sorted(other_lengths, key=lambda entry: -entry.length):
        if entry.length > length:
            continue
        together = items + entry.items
        if together > prices.max_batch_size:
            return
        more_s = prices.batch_s(together, length) - prices.batch_s(items, length)
        if entry.length == length or more_s <= prices.share_s(entry, waiting_items):
            items = together
            yield entry
