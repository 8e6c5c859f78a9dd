"""PURE. How large a batch may be, so that its deadlines are met.

A larger batch ends later. Where the whole would be too late for somebody, there are two ways:

| way    | who goes                                     | taken                                |
|--------|----------------------------------------------|--------------------------------------|
| shrink | the most, from the front, that all make it   | where nobody left behind is late by  |
|        |                                              | it, or more are served per second    |
| shed   | all but those for whom the whole is too late | else: a batch of one to save one     |
|        |                                              | starves those behind it              |
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
    """How many from the front go, and who is hopeless; one of both is all or none."""

    front: int
    hopeless: tuple[int, ...] = ()
    """Indices."""


def in_time(batch: Sequence[QueueEntry[T]], length: int, now_s: float, prices: Prices) -> bool:
    """Whether all of a batch make it, if it is sent as it is."""
    items, earliest_s = 0, math.inf
    for entry in batch:
        items += entry.items
        if entry.deadline_s is not None and entry.deadline_s < earliest_s:
            earliest_s = entry.deadline_s
    return earliest_s == math.inf or (now_s + prices.batch_s(items, length) <= earliest_s)


def fitting(
    batch: Sequence[QueueEntry[T]], now_s: float, prices: Prices, *, alone: bool
) -> Fitting:
    """What to send of a batch that is not in time; the first of it makes it alone.

    `alone`: nobody else waits.
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
