"""Chernoff's bound against the exact Poisson probability."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.mathematics.chance import e_folds, e_folds_apart


@pytest.mark.parametrize(
    ("count", "expected", "exponent"),
    [
        (0.0, 5.0, 5.0),
        (0.0, 17.0, 17.0),
        (40.0, 40.0, 0.0),
        (82.0, 40.0, 16.86),
        (9.0, 40.0, 17.58),
    ],
)
def test_exponent_of_a_count(count: float, expected: float, exponent: float) -> None:
    assert e_folds(np.array([count]), expected)[0] == pytest.approx(exponent, abs=0.05)


@given(expected=st.floats(0.5, 60.0), count=st.integers(0, 150))
def test_a_count_as_far_off_is_never_more_likely_than_the_bound(
    expected: float, count: int
) -> None:
    def chance(numbers: range) -> float:
        logs = (n * math.log(expected) - expected - math.lgamma(n + 1) for n in numbers)
        return sum(math.exp(log) for log in logs)

    as_far = range(count + 1) if count <= expected else range(count, count + 400)
    bound = math.exp(-float(e_folds(np.array([float(count)]), expected)[0]))
    assert chance(as_far) <= bound * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("count", "other", "exponent"), [(0.0, 40.0, 27.7), (16.0, 40.0, 5.3), (9.0, 9.0, 0.0)]
)
def test_two_counts_are_apart_by_the_ratio_of_their_likelihoods(
    count: float, other: float, exponent: float
) -> None:
    found = e_folds_apart(np.array([count]), np.array([other]))
    assert float(found[0]) == pytest.approx(exponent, abs=0.05)
