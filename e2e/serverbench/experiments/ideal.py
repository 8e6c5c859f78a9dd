"""The bound for every server: the same arrivals on the same device, without overhead.

One device; when it is free it takes what waits, oldest first, up to a full batch, at once. The
simulated p95 of exactly the arrivals that a server got is what its own is held against, so that a
lucky or an unlucky draw of them falls on both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

BatchCost = Callable[[int, int], float]
"""Seconds of a batch of this many items, padded to such a length."""


def finished_s(
    due_s: Sequence[float],
    cost: BatchCost,
    max_batch_size: int,
    lengths: Sequence[int] | None = None,
) -> list[float]:
    """Return when each request ends, first come, first served, padded to the longest."""
    done_s: list[float] = []
    free_s, at, count = 0.0, 0, len(due_s)
    while at < count:
        begin_s = max(free_s, due_s[at])
        end = at
        while end < count and end - at < max_batch_size and due_s[end] <= begin_s:
            end += 1
        longest = max(lengths[at:end]) if lengths is not None else 0
        free_s = begin_s + cost(end - at, longest)
        done_s += [free_s] * (end - at)
        at = end
    return done_s


def latencies_s(
    due_s: Sequence[float],
    cost: BatchCost,
    max_batch_size: int,
    lengths: Sequence[int] | None = None,
) -> list[float]:
    """Return the latency of each request, in the order of arrival."""
    done_s = finished_s(due_s, cost, max_batch_size, lengths)
    return [done - due for done, due in zip(done_s, due_s, strict=True)]


def highest(rates: Sequence[float], holds: Callable[[float], bool]) -> float | None:
    """The highest of the ascending `rates` that holds, by bisection; None where none does.

    Asked is as little as possible: a rate below one that holds is taken to hold. The first rate
    asked is high, since most of what is measured comes close to the end of its ladder.
    """
    low, high = -1, len(rates)
    middle = max(0, (3 * high) // 4)
    while high - low > 1:
        if holds(rates[middle]):
            low = middle
        else:
            high = middle
        middle = (low + high) // 2
    return None if low < 0 else rates[low]
