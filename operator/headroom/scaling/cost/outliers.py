"""Finds replicas whose latest executions must not count for others: far slower, or too fast."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median_high, median_low

from headroom.scaling.cost.change_detection import DEVIATIONS
from headroom.scaling.values.observation import CostModel
from headroom.scaling.windows.window_totals import BatchStats

FAR, FAR_FOR_CERTAIN, FEWEST_FAR = 2.0, 1.5, 1.5
"""A replica that takes at least this many times as long as the others has changed, also after few
executions, if the lower bound of the ratio is at least the second. Worked: cv 0.1 and 2 executions:
twice as long is at least 2 x exp(-0.35) = 1.4 times, 3 times as long at least 2.1."""
DOUBT_DEVIATIONS = 3.0
"""Fewer than for a change suffice to keep the executions of one tick out of the cost."""
EXTREME, FEWEST_EXTREME = 10.0, 8.0
"""No replica executes this many times as fast as the others. Worked: the mean of 8 exponential
executions is a tenth of the expected one or less once in half a million intervals."""


def is_far(ratio: float, count: float, cv: float, deviations: float = DEVIATIONS) -> bool:
    """Return whether this few executions suffice to say that a replica has become far slower.

    `ratio` is the mean of `count` executions over the expected one, `cv` their coefficient of
    variation: the lower bound of the ratio, by that of `replacement/evidence.py`, is large enough.
    """
    if ratio < FAR:
        return False
    return ratio * math.exp(-deviations * math.sqrt(math.log1p(cv * cv / count))) >= FAR_FOR_CERTAIN


def outlying(
    intervals: Sequence[BatchStats],
    expected: CostModel,
    factors: Mapping[str, float],
    cv: float | None,
) -> frozenset[str]:
    """Return the replicas whose latest executions were far slower than those of the others.

    They have probably become slow, which is not known yet: one batch that takes ten times as long,
    of a size that no other replica formed, would tilt the line of all.
    """
    if cv is None or len(intervals) < 2:
        return frozenset()
    fixed_s, per_item_s = expected.fixed_s, expected.per_item_s
    ratios = [
        mean_s / (factors.get(replica, 1.0) * (fixed_s + per_item_s * size))
        for replica, _, size, mean_s in intervals
    ]
    common = median_low(ratios)
    if max(ratios) < FAR * common:
        return frozenset()
    return frozenset(
        one.replica
        for one, ratio in zip(intervals, ratios, strict=True)
        if is_far(ratio / common, one.batches, cv, DOUBT_DEVIATIONS)
    )


def too_fast(intervals: Sequence[BatchStats], expected: CostModel) -> frozenset[str]:
    """Return the replicas that claim to execute ten times as fast as the others, or faster.

    Of two replicas, the one whose times are nearer to the expected ones is kept.
    """
    if len(intervals) < 2:
        return frozenset()
    ratios = [
        mean_s / (expected.fixed_s + expected.per_item_s * size) for _, _, size, mean_s in intervals
    ]
    low, high = median_low(ratios), median_high(ratios)
    usual = low if low * high >= 1.0 else high
    if min(ratios) * EXTREME > usual:
        return frozenset()
    return frozenset(
        one.replica
        for one, ratio in zip(intervals, ratios, strict=True)
        if one.batches >= FEWEST_EXTREME and ratio * EXTREME <= usual
    )
