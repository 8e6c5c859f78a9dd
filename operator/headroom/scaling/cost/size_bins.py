"""Sums of executed batches by bin of their size: added, faded and rescaled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from headroom.scaling.cost.change_detection import KEPT
from headroom.scaling.cost.line_fit import NOTHING, Sums
from headroom.scaling.windows.window_totals import BatchStats

BIN_FACTOR = 1.5
OTHERS_KEPT = 100.0
"""Batches that a bin keeps after a change of cost if no such size was executed then: nothing else
shows what it costs. Where a neighbour or heat slows all executions every minute, hardly anything
would be left after two changes, and a line through small batches while they are fast and large ones
while they are slow says that a batch saves nothing."""
_LOG_BIN_FACTOR = math.log(BIN_FACTOR)


def with_intervals(
    bins: Mapping[int, Sums],
    intervals: Iterable[BatchStats],
    fade: float,
    factors: Mapping[str, float],
) -> dict[int, Sums]:
    """Return the bins with intervals added; only bins that are refreshed fade."""
    fresh: dict[int, Sums] = {}
    for replica, batches, size, mean_s in intervals:
        number, items = bin_of(size), batches * size
        usual_s = mean_s / factors.get(replica, 1.0) if factors else mean_s
        weight, sizes, squared, seconds, products = fresh.get(number, NOTHING)
        fresh[number] = (
            weight + batches,
            sizes + items,
            squared + items * size,
            seconds + batches * usual_s,
            products + items * usual_s,
        )
    added = {
        number: tuple(fade * old + new for old, new in zip(bins[number], sums, strict=True))
        if number in bins
        else sums
        for number, sums in fresh.items()
    }
    return {**bins, **added}


def bin_of(size: float) -> int:
    """Return 0 for batches of one, then (1, 1.5], (1.5, 2.25] and so on."""
    return 0 if size <= 1.0 else 1 + int(math.log(size) / _LOG_BIN_FACTOR)


def changed(
    bins: Mapping[int, Sums], ratio: float, intervals: Iterable[BatchStats]
) -> dict[int, Sums]:
    """Return the bins after a change of cost by this ratio, which these intervals show.

    The past is scaled. It has little weight from then on, most of all for the sizes executed now.
    """
    executed = {bin_of(one.size) for one in intervals}
    return {
        number: _rescaled(sums, ratio, 0.0 if number in executed else OTHERS_KEPT)
        for number, sums in bins.items()
    }


def _rescaled(sums: Sums, ratio: float, least: float) -> Sums:
    """Return sums as if every execution had taken `ratio` times as long; `least` batches stay."""
    kept = max(KEPT, min(1.0, least / sums[0]))
    weight, sizes, sizes_squared, seconds, products = (kept * total for total in sums)
    return weight, sizes, sizes_squared, ratio * seconds, ratio * products
