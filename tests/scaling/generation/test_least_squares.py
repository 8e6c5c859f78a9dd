"""Least squares with no part below zero agree with the best of all subsets of parts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from headroom.scaling.generation.learning.iteration_cost.least_squares import non_negative
from headroom.scaling.mathematics.arrays import Vector


def best_of_all_subsets(inner: Vector, right: Vector) -> float:
    """The lowest x'Ax - 2 b'x of all parts that are not below zero."""
    lowest = 0.0
    for size in range(1, len(right) + 1):
        for chosen in combinations(range(len(right)), size):
            places = list(chosen)
            parts = np.linalg.lstsq(inner[np.ix_(places, places)], right[places], rcond=None)[0]
            if (parts >= 0.0).all():
                lowest = min(lowest, -float(right[places] @ parts))
    return lowest


@pytest.mark.parametrize("seed", range(100))
def test_parts_are_the_best_that_are_not_below_zero(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 6))
    columns = random.normal(size=(30, count)) * 10.0 ** random.uniform(-3.0, 5.0, count)
    if seed % 3 == 0:  # hard to distinguish
        columns[:, 1] = 2.0 * columns[:, 0] * (1.0 + 1e-3 * random.normal(size=30))
    true = random.normal(size=count) / np.abs(columns).max(axis=0)
    seconds = columns @ true + 0.1 * random.normal(size=30)
    inner, right = columns.T @ columns, columns.T @ seconds
    parts = non_negative(inner, right)
    assert (parts >= 0.0).all()
    reached = float(parts @ inner @ parts - 2.0 * right @ parts)
    assert reached == pytest.approx(best_of_all_subsets(inner, right), abs=1e-6 * seconds @ seconds)


def test_of_columns_that_are_multiples_the_first_counts() -> None:
    prompts = np.random.default_rng(1).uniform(0.0, 500.0, 100)
    columns = np.column_stack((np.ones(100), prompts, 200.0 * prompts))
    seconds = columns @ np.array([6e-3, 2e-4, 0.0])
    parts = non_negative(columns.T @ columns, columns.T @ seconds)
    assert parts == pytest.approx([6e-3, 2e-4, 0.0], rel=1e-3, abs=1e-9)
