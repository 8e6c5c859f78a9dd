"""A binary heap of (time, number) pairs in two arrays, for compiled code; the caller counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.compiled.compiling import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled
def push(times_s: Floats, items: Ints, count: int, time_s: float, item: int) -> None:
    """Add a pair to a heap of `count`."""
    index = count
    while index > 0:
        parent = (index - 1) >> 1
        if times_s[parent] <= time_s:
            break
        times_s[index] = times_s[parent]
        items[index] = items[parent]
        index = parent
    times_s[index] = time_s
    items[index] = item


@compiled
def pop(times_s: Floats, items: Ints, count: int) -> int:
    """Remove the earliest pair of a heap of `count`, at least 1; return its number."""
    first: int = items[0]
    count -= 1
    if count > 0:
        time_s, moved = times_s[count], items[count]
        index = 0
        while True:
            child = 2 * index + 1
            if child >= count:
                break
            if child + 1 < count and times_s[child + 1] < times_s[child]:
                child += 1
            if times_s[child] >= time_s:
                break
            times_s[index] = times_s[child]
            items[index] = items[child]
            index = child
        times_s[index] = time_s
        items[index] = moved
    return first
