"""Draws the arrival times and the kinds of requests: equal for every server under test."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple


class Segment(NamedTuple):
    """A rate in requests per second, for some seconds."""

    rate_rps: float
    seconds: float


def poisson(segments: Sequence[Segment], seed: int) -> list[float]:
    """Instants from the first segment's begin, sorted, in seconds."""
    chance, due_s, began_s = random.Random(seed), [], 0.0
    for rate_rps, seconds in segments:
        ends_s = began_s + seconds
        at_s = began_s + chance.expovariate(rate_rps)
        while at_s < ends_s:
            due_s.append(at_s)
            at_s += chance.expovariate(rate_rps)
        began_s = ends_s
    return due_s


def kinds(shares: Sequence[float], count: int, seed: int) -> list[int]:
    """An index of `shares` for each of `count` requests; independent of `poisson`."""
    chance = random.Random(~seed)
    return chance.choices(range(len(shares)), cum_weights=list(accumulate(shares)), k=count)


def lognormal_lengths(
    median: float, sigma: float, bounds: tuple[int, int], count: int
) -> list[int]:
    """`count` equally likely lengths: quantiles of a lognormal, held within the bounds."""
    chance = random.Random(0)
    drawn = sorted(median * chance.lognormvariate(0.0, sigma) for _ in range(200 * count))
    low, high = bounds
    return [min(high, max(low, round(drawn[200 * at + 100]))) for at in range(count)]
