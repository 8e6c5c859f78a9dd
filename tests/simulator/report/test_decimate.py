"""Thinning keeps peaks, gaps and both ends."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headroom.simulator.report.decimate import extremes, last, most, turns


def test_extremes_keep_first_least_most_and_last_of_each_bucket() -> None:
    values = np.array([1.0, 5.0, 0.0, 2.0, 3.0, 3.0, 3.0, 3.0])
    assert extremes(values, 2).tolist() == [0, 1, 2, 3, 4, 7]


def test_extremes_keep_gaps_and_infinite_peaks() -> None:
    values = np.array([1.0, math.nan, math.nan, math.nan, math.inf, 1.0])
    assert extremes(values, 3).tolist() == [0, 2, 4, 5]
    assert most(values, 3).tolist()[::2] == [1.0, math.inf]
    assert math.isnan(most(values, 3)[1])


@given(st.lists(st.floats(0, 1e6), max_size=400), st.integers(1, 40))
def test_extremes_of_any_series_keep_peaks_and_few_points(
    values: list[float], buckets: int
) -> None:
    series = np.array(values, dtype=float)
    kept = extremes(series, buckets)
    assert len(kept) <= 4 * buckets
    assert sorted(set(kept.tolist())) == kept.tolist()
    if values:
        assert series[kept].max() == max(values)
        assert series[kept].min() == min(values)
        assert {0, len(values) - 1} <= set(kept.tolist())


def test_turns_are_samples_where_a_column_steps() -> None:
    columns = np.array([[1.0, 1, 1, 2, 2, 2], [0.0, 0, 0, 0, 0, 3]])
    assert turns(columns, 4).tolist() == [0, 3, 5]
    assert turns(np.empty((2, 0)), 4).tolist() == []


def test_turns_of_restless_series_are_bounded_and_keep_the_peak() -> None:
    restless = np.arange(1000.0) % 7
    restless[500] = 99
    kept = turns(restless[None, :], 10)
    assert len(kept) <= 42
    assert 500 in kept


def test_last_is_the_final_value_of_each_bucket() -> None:
    assert last(np.arange(10.0), 5).tolist() == [1, 3, 5, 7, 9]
    assert last(np.arange(2.0), 5).tolist() == [0, 1]
