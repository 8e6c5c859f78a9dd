"""Places the requests of a wide bucket as the model expects them.

vLLM counts times per token up to 25, 50 and 75 ms, and all answers of a service usually lie in one
or two of these buckets. How many are above a promise of 40 ms does not show. Evenly spread they
would be 40 % of those that all take 30 ms, and no number of replicas would change that. First
tokens are counted up to 1, 2.5 and 5 s: of those that all take 1.2 s, 67 % would be above 1.5 s.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

import numpy as np

from headroom.scaling.mathematics.arrays import Vector

CONTRADICTED = 4.0
"""This many times the expected requests in a bucket, and the model does not know where they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A time as the model expects it: lognormal."""

    mean_s: float
    cv: float
    """Coefficient of variation."""

    @classmethod
    def through(cls, median_s: float, percentile_s: float, percentile: float) -> Self | None:
        """Return the distribution through the median and a percentile above it.

        None where these are no times, or the percentile is not above 0.5.
        """
        if not 0.0 < median_s <= percentile_s < math.inf or percentile <= 0.5:
            return None
        deviation = math.log(percentile_s / median_s) / NormalDist().inv_cdf(percentile)
        variance = deviation * deviation
        mean_s = median_s * math.exp(variance / 2.0)
        return cls(mean_s=mean_s, cv=math.sqrt(math.expm1(variance)))

    def share_within(
        self, bounds_s: Sequence[float], counts: Vector, seconds: float
    ) -> float | None:
        """Return the share of a bucket's requests that take at most so long; `counts` cumulative.

        None where the counts contradict the model, and at a bound, where they need none.
        """
        index = bisect_left(bounds_s, seconds)
        if bounds_s[index] == seconds or not counts[-1] > 0.0:
            return None
        lower, before = (bounds_s[index - 1], counts[index - 1]) if index else (0.0, 0.0)
        below, here, upper = self._below(lower, seconds, bounds_s[index])
        inside = float(counts[index] - before) / float(counts[-1])
        if not 0.0 < inside <= CONTRADICTED * (upper - below):
            return None
        return (here - below) / (upper - below)

    def _below(self, *times_s: float) -> list[float]:
        """Return the share of all requests that take less than each of these times."""
        variance = max(_LEAST_VARIANCE, math.log1p(self.cv * self.cv))
        logarithms = NormalDist(math.log(self.mean_s) - variance / 2.0, math.sqrt(variance))
        return [
            logarithms.cdf(math.log(one_s)) if 0.0 < one_s < math.inf else float(one_s > 0.0)
            for one_s in times_s
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone(Spread):
    """The time of a request that waits for no other; how long others wait is not known.

    So as many as the bucket would have without a queue are where they would be, the rest anywhere
    in it. Worked: prompts of 1.2 s are all in time for 1.5 s, those of 0.2 s that took 1 to 2.5 s
    waited, and a third of them is.
    """

    def share_within(
        self, bounds_s: Sequence[float], counts: Vector, seconds: float
    ) -> float | None:
        """Return the share of a bucket's requests that take at most so long; `counts` cumulative.

        None at a bound, and above the last finite one.
        """
        index = bisect_left(bounds_s, seconds)
        lower_s, before = (bounds_s[index - 1], counts[index - 1]) if index else (0.0, 0.0)
        inside, upper_s = float(counts[index] - before), bounds_s[index]
        if seconds == upper_s or not inside > 0.0 or math.isinf(upper_s):
            return None
        below, here, upper = self._below(lower_s, seconds, upper_s)
        alone = min(1.0, (upper - below) * float(counts[-1]) / inside)
        even = (seconds - lower_s) / (upper_s - lower_s)
        if not alone > 0.0:
            return even
        return alone * (here - below) / (upper - below) + (1.0 - alone) * even


_LEAST_VARIANCE = 1e-6


def with_bound(
    bounds_s: tuple[float, ...], counts: Vector, seconds: float, share: float | None
) -> tuple[tuple[float, ...], Vector]:
    """Return a histogram with one more bound, which splits its bucket at this share."""
    if share is None:
        return bounds_s, counts
    index = bisect_left(bounds_s, seconds)
    before = counts[index - 1] if index else 0.0
    within = before + share * (counts[index] - before)
    split = np.concatenate((counts[:index], [within], counts[index:]))
    return (*bounds_s[:index], seconds, *bounds_s[index:]), split
