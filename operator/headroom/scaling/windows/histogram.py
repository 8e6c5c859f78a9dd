"""Percentiles of merged histogram buckets, with misses counted as +Inf.

Buckets are merged before the percentile is computed; percentiles are never averaged. Within a
bucket the position is interpolated linearly, so the error is at most the width of the bucket (15 %
on the server's grid).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.latency_counts import LatencyCounts

Counts = NDArray[np.float64]


def percentile(
    bounds_s: Sequence[float], counts: Counts, missed: float, ratio: float
) -> float | None:
    """Return the latency in seconds that the share `ratio` of all requests did not exceed.

    `counts` are cumulative per bound (last bound +Inf); `missed` requests count as infinite. None
    if there was no request; inf if the percentile falls among the misses or above the last bound.

    Worked: bounds (0.1, 0.2, inf), counts (90, 100, 100), missed 0, ratio 0.95: the 95th of 100
    lies halfway through the second bucket, at 0.15 s.
    """
    answered = float(counts[-1]) if len(counts) else 0.0
    total = answered + missed
    if total <= 0:
        return None
    rank = ratio * total
    if rank > answered:
        return math.inf
    index = bisect_left(counts, rank)
    upper = bounds_s[index]
    if math.isinf(upper):
        return math.inf
    lower = bounds_s[index - 1] if index else 0.0
    below = float(counts[index - 1]) if index else 0.0
    inside = float(counts[index]) - below
    return lower + (upper - lower) * ((rank - below) / inside if inside > 0 else 1.0)


def attainment(
    bounds_s: Sequence[float], counts: Counts, missed: float, target_s: float
) -> float | None:
    """Return the share of all requests answered within `target_s`; None without requests.

    `counts` [bounds] is cumulative; `missed` requests have no answer in it.
    """
    answered = float(counts[-1]) if len(counts) else 0.0
    total = answered + missed
    return float(answered_within(bounds_s, counts, target_s)) / total if total > 0 else None


def answered_within(bounds_s: Sequence[float], counts: Counts, target_s: float) -> Counts:
    """Return the requests answered within `target_s`, of one histogram or of each of several.

    The bounds must not be empty.
    """
    index, by_bound = bisect_left(bounds_s, target_s), counts.T
    below: Counts = by_bound[index - 1] if index else np.zeros(counts.shape[:-1])
    if math.isinf(bounds_s[index]):
        return below
    lower = bounds_s[index - 1] if index else 0.0
    part = (target_s - lower) / (bounds_s[index] - lower)
    within: Counts = below + part * (by_bound[index] - below)
    return within


COARSE = 1.5
"""Ratio of its bounds above which a bucket does not tell where in it a latency is. Worked: nine of
ten answers take less than 0.5 s, the rest up to 0.6 s. Spread evenly from 0.5 s to 1 s, the next of
Prometheus' default bounds, 6 % of all would miss a target of 0.7 s."""


def undecided(
    bounds_s: Sequence[float], counts: Counts, missed: float, ratio: float, target_s: float
) -> tuple[float, float] | None:
    """Return the bounds of a coarse bucket in which both the percentile and the target lie.

    Then it is not known which of them is larger. None where it is known, or nothing was counted.
    `counts` [bounds] is cumulative, `ratio` the percentile as a share.
    Misses alone may exceed what the target allows.
    """
    found_s = percentile(bounds_s, counts, missed, ratio)
    if found_s is None or not len(counts) or missed > (1.0 - ratio) * (counts[-1] + missed):
        return None
    lower, upper, _ = _bucket(bounds_s, bisect_left(bounds_s, target_s))
    if target_s == upper or upper <= COARSE * lower or not lower < found_s <= upper:
        return None
    return lower, upper


def at_least_late(bounds_s: Sequence[float], counts: Counts, target_s: float) -> Counts:
    """Return the answers that took longer than `target_s` for certain, as `answered_within` does.

    Those in a coarse bucket, or above the last finite bound, may have been in time where the target
    is there, too. Worked: of 10 answers 3 took longer than 62 s, the last bound. 3 are late for a
    target of 50 s, and none for 135 s.
    """
    lower, upper, index = _bucket(bounds_s, bisect_left(bounds_s, target_s))
    answered: Counts = counts.T[-1]
    if upper <= COARSE * lower:
        return answered - answered_within(bounds_s, counts, target_s)
    late: Counts = answered - counts.T[index]
    return late


def nearest(bounds_s: Sequence[float], measured_s: float, expected_s: float) -> float:
    """Return the latency that a percentile may have been, and that is nearest to the expected one.

    In a narrow bucket it is the measured one.
    """
    lower, upper, _ = _bucket(bounds_s, bisect_left(bounds_s, measured_s))
    return measured_s if upper <= COARSE * lower else min(max(lower, expected_s), upper)


def _bucket(bounds_s: Sequence[float], index: int) -> tuple[float, float, int]:
    return (bounds_s[index - 1] if index else 0.0), bounds_s[index], index


def rebinned(latency: LatencyCounts, bounds_s: tuple[float, ...]) -> LatencyCounts:
    """Return the histogram on other bounds, interpolated as `percentile` does; the last is +Inf.

    What lies above its own last finite bound counts as slower than every finite one. Counters stay
    monotone, because each new count is a fixed mean of old ones. Worked: 10 requests within 0.1 s
    and 30 within 0.3 s are 20 within 0.2 s.
    """
    if not bounds_s:
        return LatencyCounts(bounds_s=(), counts=())
    if not latency.bounds_s:
        return LatencyCounts(bounds_s=bounds_s, counts=(0.0,) * len(bounds_s))
    known_s, counts = (0.0, *latency.bounds_s[:-1]), (0.0, *latency.counts[:-1])
    found = np.interp(bounds_s[:-1], known_s, counts).tolist()
    return LatencyCounts(bounds_s=bounds_s, counts=(*found, latency.counts[-1]))
