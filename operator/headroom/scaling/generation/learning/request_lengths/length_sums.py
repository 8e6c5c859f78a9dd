"""The sums that lengths are learned from: requests, their tokens and squares, and how they fade."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headroom.scaling.generation.counters.length_moments import moments
from headroom.scaling.generation.counters.token_increase import Increase
from headroom.scaling.generation.counters.token_table import FIRST_SUM, Count, Grid
from headroom.scaling.generation.learning.request_lengths.length_increase import (
    arrivals,
    decoding_steps,
)
from headroom.scaling.mathematics.arrays import Vector

Sums = tuple[float, ...]
ARRIVED, COMPUTED, CACHED, PROMPTS, PROMPT, PROMPT2, OUTPUTS, OUTPUT, OUTPUT2 = range(9)
DRAFTS, ACCEPTED, GENERATED, WIDTH = 9, 10, 11, 12
EMPTY: Sums = (0.0,) * WIDTH
LEAST_REQUESTS = 5.0
"""Fewer requests are no mean."""


def sums_of(increase: Increase, total: Vector, grid: Grid) -> list[float]:
    """Return the sums of an interval."""
    prompts, outputs, _, _ = grid.slices()
    added, counts = [0.0] * WIDTH, total[:FIRST_SUM].tolist()
    *added[ARRIVED : CACHED + 1], added[GENERATED] = arrivals(increase, grid)
    added[PROMPTS : PROMPT2 + 1] = moments(grid.prompt, total[prompts], counts[Count.PROMPT_TOTAL])
    added[OUTPUTS : OUTPUT2 + 1] = moments(grid.output, total[outputs], counts[Count.OUTPUT_TOTAL])
    added[DRAFTS : ACCEPTED + 1] = decoding_steps(counts)
    return added


def faded(before: Sums, added: Sequence[float], constants: float) -> Sums:
    """Return the sums faded by this many time constants, plus the added ones."""
    fade = math.exp(-constants)
    return tuple([fade * old + new for old, new in zip(before, added, strict=True)])


def variation(sums: Sums, tokens: int, squares: int, requests: int) -> float | None:
    """Return the coefficient of variation of a length; None before enough requests.

    `tokens`, `squares` and `requests` say where in the sums these are.
    """
    count, total = sums[requests], sums[tokens]
    if count < LEAST_REQUESTS or total <= 0.0 or sums[squares] <= 0.0:
        return None
    return math.sqrt(max(0.0, sums[squares] * count / (total * total) - 1.0))
