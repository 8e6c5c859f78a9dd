"""Limits the size of a batch by the deadlines of its requests. Pure.

A larger batch ends later. If the whole would be too late for some request, there are two ways:

| way    | who goes                                     | used if                              |
|--------|----------------------------------------------|--------------------------------------|
| shrink | as many from the front as all meet theirs    | no remaining one is late because of  |
|        |                                              | it, or it serves more per second     |
| shed   | all but those for whom the whole is too late | otherwise: batches of one that save  |
|        |                                              | one request starve the rest          |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, TypeVar

from headroom_server.scheduling.batch_selection import Prices
from headroom_server.scheduling.entries import QueueEntry

T = TypeVar("T")


class Fitting(NamedTuple):
    """Number from the front that fit, or those that are too late; one of the two is all or none."""

    front: int
    hopeless: tuple[int, ...] = ()
    """Indices of entries that are too late."""


def in_time(batch: Sequence[QueueEntry[T]], length: int, now_s: float, prices: Prices) -> bool:
    """Return whether all entries meet their deadlines if the batch is sent as it is."""
    items, earliest_s = 0, math.inf
    for entry in batch:
        items += entry.items
        if entry.deadline_s is not None and entry.deadline_s < earliest_s:
            earliest_s = entry.deadline_s
    return earliest_s == math.inf or (now_s + prices.batch_s(items, length) <= earliest_s)


def fitting(
    batch: Sequence[QueueEntry[T]], now_s: float, prices: Prices, *, alone: bool
) -> Fitting:
    """Return the entries to execute of a late batch whose first one alone would be in time.

    `alone`: no other request waits.
    """
    length = batch[0].length
    items = list(accumulate(entry.items for entry in batch))
    dues_s = list(accumulate((entry.due_s for entry in batch), min))
    front = 1
    while front < len(batch) and now_s + prices.batch_s(items[front], length) <= dues_s[front]:
        front += 1
    shrunk_s, whole_s = prices.batch_s(items[front - 1], length), prices.batch_s(items[-1], length)
    rest = batch[front:]
    rest_end_s = now_s + shrunk_s + prices.batch_s(items[-1] - items[front - 1], length)
    if alone and rest_end_s <= min(entry.due_s for entry in rest):
        return Fitting(front)
    late = tuple(at for at, entry in enumerate(batch) if entry.due_s < now_s + whole_s)
    on_time = items[-1] - sum(batch[at].items for at in late)
    if not on_time or items[front - 1] / shrunk_s >= on_time / prices.batch_s(on_time, length):
        return Fitting(front)
    return Fitting(len(batch), late)
