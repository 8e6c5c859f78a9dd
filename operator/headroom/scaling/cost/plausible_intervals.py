"""Selects the executed intervals that a server can have had, without outliers."""

from __future__ import annotations

from collections.abc import Iterable

from headroom.scaling.values.observation import CostModel
from headroom.scaling.windows.window_totals import BatchStats

MOST_PARALLEL = 64
"""Batches that run at the same time for each slot that the resource states: a server may have more
workers than it says."""
OUTLIER_FACTOR = 20.0
"""An interval this many times slower than the fit is a hang, not a cost: a lognormal execution of
cv 1 exceeds 20 times its mean once in 20 000."""
_LEAST_SIZE, ROUNDING = 0.5, 1.001
"""The counters of one page may be one batch apart."""
_SHORTEST_S = 1e-6
"""No batch is shorter: what a replica carries is divided by it."""
_LEAST_MEAN_S = 1e-4
"""A shorter batch counts as one of this length."""


def plausible(
    intervals: Iterable[BatchStats], expected: CostModel | None, elapsed_s: float
) -> list[BatchStats]:
    """Return the intervals that a server with the `expected` cost can have had.

    A batch has at least one request and at most the largest batch in each slot. All batches last
    no longer together than the interval, times what may run in parallel, and one batch more; what
    is reported beyond that has no weight.
    """
    if expected is None:
        return [one for one in intervals if one.size >= _LEAST_SIZE and one.mean_s >= _SHORTEST_S]
    fixed_s, per_item_s = OUTLIER_FACTOR * expected.fixed_s, OUTLIER_FACTOR * expected.per_item_s
    slots = expected.slots
    largest = ROUNDING * expected.max_batch * slots
    found = [
        one
        for one in intervals
        for _, _, size, mean_s in (one,)
        if _LEAST_SIZE <= size <= largest and _SHORTEST_S <= mean_s <= fixed_s + per_item_s * size
    ]
    if elapsed_s <= 0.0:
        return found
    most_s = MOST_PARALLEL * slots * elapsed_s
    return [
        one
        if batches * mean_s <= most_s + slots * mean_s and mean_s >= _LEAST_MEAN_S
        else one._replace(batches=min(batches, slots + most_s / max(mean_s, _LEAST_MEAN_S)))
        for one in found
        for _, batches, _, mean_s in (one,)
    ]
