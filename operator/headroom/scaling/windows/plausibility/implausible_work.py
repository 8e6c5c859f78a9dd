"""Finds replicas that worked more than their answers explain, unlike the others. Pure.

What their batches seem to cost would change the cost of all, so they teach none.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.flags import any_set
from headroom.scaling.windows.counter_series import (
    BATCH_ITEMS,
    BATCH_SECONDS,
    BATCHES,
    LATENCY,
    MISSED,
)
from headroom.scaling.windows.sliding_windows import Windows

CROWDED, FEWEST_ANSWERED = 2.0, 8.0
_LEAST_S = 1e-9


def crowded(windows: Windows) -> frozenset[str]:
    """Return the replicas that executed many more requests than they answered, unlike the others.

    What their batches seem to cost would change the cost of all.
    """
    added, columns = windows.series.added, windows.series.columns
    if len(columns) < 2 or not windows.bounds_s:
        return frozenset()
    items, answered = added[:, BATCH_ITEMS], added[:, -1]
    surplus = items - CROWDED * np.maximum(answered, FEWEST_ANSWERED)
    if not any_set(surplus > 0.0):
        return frozenset()
    each = items / np.maximum(answered, FEWEST_ANSWERED)
    usual = float(np.sort(each)[(len(each) - 1) // 2])
    return frozenset(
        uid
        for uid, one in zip(columns, each.tolist(), strict=True)
        if one > CROWDED * max(usual, 1.0)
    )


def overlong(windows: Windows) -> frozenset[str]:
    """Return the replicas whose batches took longer than their requests can have, unlike others'.

    No batch lasts longer than a request in it, and the histogram bounds what requests lasted; those
    still in flight allow for a batch each. Worked: 14 requests of at most 0.5 s, and 15 s of
    batches: the counters were wrong before, or are now, and teach neither cost nor speed.
    """
    added, bounds_s = windows.series.added, windows.bounds_s
    if len(windows.series.columns) < 2 or len(bounds_s) < 2:
        return frozenset()
    counts, seconds = added[:, LATENCY:], added[:, BATCH_SECONDS]
    if not np.count_nonzero(seconds):  # a server that generates has no batches
        return frozenset()
    lasted_s = counts @ _at_most_s(bounds_s)
    over = seconds > lasted_s
    if not any_set(over):
        return frozenset()
    last = -2 if math.isinf(bounds_s[-1]) else -1
    over &= (counts[:, -1] <= counts[:, last]) & (added[:, MISSED] <= 0.0)
    shares = seconds / np.maximum(lasted_s, _LEAST_S)
    usual = float(np.sort(shares)[(len(shares) - 1) // 2])
    over &= shares > CROWDED * usual
    found = set()
    for uid, column in windows.series.columns.items():
        sample = windows.last.get(uid)
        if not over[column] or sample is None or sample.generation is not None:
            continue
        mean_s = seconds[column] / max(1.0, added[column, BATCHES])
        if seconds[column] > lasted_s[column] + (sample.waiting + sample.running + 1.0) * mean_s:
            found.add(uid)
    return frozenset(found)


@lru_cache(maxsize=64)
def _at_most_s(bounds_s: tuple[float, ...]) -> Vector:
    """Return the weights of cumulative counts whose sum bounds the seconds that requests lasted.

    Those in the bucket without an end add nothing.
    """
    finite = [bound for bound in bounds_s if math.isfinite(bound)]
    weights = np.zeros(len(bounds_s))
    weights[: len(finite)] = -np.diff([*finite, 0.0])
    return weights
