"""Values → pixels, and round numbers on axes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.charts import axes
from headroom.charts.axes import Axis
from headroom.simulator.report.number_format import clock


def labels(of: Axis) -> list[str]:
    return [tick.label for tick in of.ticks]


def test_linear_axis_has_round_steps_from_zero() -> None:
    up = axes.linear(105, 100, 0, count=4)
    assert labels(up) == ["0", "50", "100"]
    assert up(0) == 100
    assert up(52.5) == pytest.approx(50)
    assert up(math.inf) == 0


def test_axis_of_large_counts_is_logarithmic_with_a_zero() -> None:
    assert labels(axes.counts(5000, 100, 0)) == ["0", "10", "100", "1k"]
    assert labels(axes.counts(7, 100, 0)) == ["0", "2", "4", "6"]
    assert axes.counts(5000, 100, 0)(0) == 100


def test_root_axis_spreads_values_near_zero() -> None:
    up = axes.root(10.0, 100, 0)
    assert up(0.1) == pytest.approx(0)
    assert up(0.025) == pytest.approx(50)  # a quarter of the misses is half of the way
    assert labels(up) == ["0 %", "0.5 %", "1 %", "2 %", "5 %", "10 %"]


def test_logarithmic_axis_has_ticks_at_1_2_and_5() -> None:
    assert labels(axes.logarithmic(1, 100, 0, 500)) == ["1", "2", "5", "10", "20", "50", "100"]


@pytest.mark.parametrize(
    ("end_s", "expected"),
    [
        (14400, ["0:00", "0:30", "1:00", "1:30", "2:00", "2:30", "3:00", "3:30", "4:00"]),
        (20, ["0:00", "0:00:05", "0:00:10", "0:00:15", "0:00:20"]),
        (7 * 86400, ["0:00", "24:00", "48:00", "72:00", "96:00", "120:00", "144:00", "168:00"]),
    ],
)
def test_time_axis_has_ticks_at_round_times(end_s: float, expected: list[str]) -> None:
    assert labels(axes.time(0, end_s, 0, 700, count=8, label=clock)) == expected


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_any_axis_is_monotone_and_within_its_pixels(high: float, value: float) -> None:
    for up in (axes.linear(high, 100, 0), axes.counts(high, 100, 0), axes.root(high, 100, 0)):
        assert -1e-6 <= up(value) <= 100 + 1e-6
        assert up(value) >= up(2 * value) - 1e-6
