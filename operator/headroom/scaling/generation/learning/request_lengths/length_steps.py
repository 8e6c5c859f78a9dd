"""Tests changes of lengths against chance, and keeps the prompts since their last step."""

from __future__ import annotations

import math

from headroom.scaling.generation.learning.request_lengths.length_sums import (
    ARRIVED,
    COMPUTED,
    LEAST_REQUESTS,
    OUTPUTS,
    PROMPTS,
    Sums,
)

QUICK_S, FAST_S, SLOW_S = 12.0, 60.0, 900.0
"""Over how long each of three sums of lengths fades."""
DEVIATIONS = 3.0
LEAST_CV = 0.05
LEAST_QUICK = 50.0
"""Times 1 + cv^2: so few requests in seconds are no mean, because some prompts are many times as
long as others. Worked: 68 requests of cv 0.6, 134 of cv 1.3."""


def beyond_chance(difference: float, chance: float) -> float:
    """Return the share of a difference that counts: none within chance, nearly all far beyond it.

    Shrinkage after James and Stein (1961). A difference that counted whole as soon as it exceeded
    chance made capacities jump by a tenth, and replicas come and go with it.
    """
    return max(0.0, 1.0 - (chance / difference) ** 2) if difference else 0.0


def by_chance(mean: float, cv: float, requests: float) -> float:
    """Return how far the mean of this many requests is from the true one by chance."""
    return DEVIATIONS * max(LEAST_CV, cv) * mean / math.sqrt(requests)


def enough(requests: float, cv: float) -> bool:
    """Return whether this many requests in seconds are a mean."""
    return requests >= LEAST_QUICK * (1.0 + cv * cv)


def is_step(quick: Sums, fast: Sums, cv: float) -> bool:
    """Return whether prompts of the last seconds differ from those of a minute beyond chance."""
    if min(quick[ARRIVED], fast[ARRIVED]) < LEAST_REQUESTS:
        return False
    usual = fast[COMPUTED] / fast[ARRIVED]
    moved = abs(quick[COMPUTED] / quick[ARRIVED] - usual)
    return moved > by_chance(usual, cv, quick[ARRIVED])


def without_before(sums: Sums, since: Sums, cv: float) -> Sums:
    """Return the sums without the prompts from before a step; of those that ended, if enough have.

    Answers that end are still those of the prompts before it.
    """
    first = OUTPUTS if enough(since[PROMPTS], cv) else PROMPTS
    return (*since[:first], *sums[first:])
