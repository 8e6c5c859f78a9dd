"""Detects that executions of the same sizes suddenly take longer or shorter than before. Pure.

A slower replica forms larger batches. While little is known of these, a line through small batches
of before and large ones of now explains both: a batch then seems to save nothing, and each replica
that is added makes batches smaller and the error larger. Worked: 6 requests took 28 ms, 15 take
81 ms since a neighbour came; through both, a replica of 340/s carries 195/s, and after the next
visit 60/s. What 15 requests took before tells the two apart, within one tick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_high, median_low

from headroom.scaling.cost.change_detection import FEWEST_BATCHES, RATIO, detect_change
from headroom.scaling.cost.line_fit import NOTHING, Sums
from headroom.scaling.cost.size_bins import bin_of
from headroom.scaling.cost.speed_fit import FEWEST_OF_ONE
from headroom.scaling.windows.window_totals import BatchStats


def changes_suddenly(
    bins: Mapping[int, Sums],
    intervals: Sequence[BatchStats],
    factors: Mapping[str, float],
    cv: float,
) -> bool:
    """Return whether most replicas take longer than `bins` know for the sizes, or all shorter.

    A bin has sizes within a factor of 1.5: what a request adds is anything from nothing to its
    share. `factors` are the speeds of replicas that differ, `cv` is the variation of executions.
    """
    count = took_s = least_s = most_s = 0.0
    known = dict[int, float]()
    longer, shorter = list[float](), list[float]()
    for replica, batches, size, mean_s in intervals:
        number = bin_of(size)
        weight, sizes, _, seconds, _ = bins.get(number, NOTHING)
        if weight < FEWEST_BATCHES:
            continue
        known[number] = weight
        usual_s, share = factors.get(replica, 1.0) * seconds / weight, size * weight / sizes
        low_s, high_s = usual_s * min(1.0, share), usual_s * max(1.0, share)
        count, took_s = count + batches, took_s + batches * mean_s
        least_s, most_s = least_s + batches * low_s, most_s + batches * high_s
        longer.append(mean_s / high_s)
        shorter.append(mean_s / low_s)
    if count < FEWEST_OF_ONE * cv * cv or 2 * len(longer) <= len(intervals):
        return False
    before = sum(known.values())
    evidence = count * before / (count + before)
    if median_low(longer) > RATIO:
        return detect_change((evidence, took_s, most_s), cv) is not None
    if median_high(shorter) < 1 / RATIO:
        return detect_change((evidence, took_s, least_s), cv) is not None
    return False
