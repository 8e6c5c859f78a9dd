"""Figures of the console: gaps, marks, axes, and numbers in them."""

from __future__ import annotations

import html
import json
import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.charts import axes
from headroom.charts.markup import tag
from headroom.charts.svg import path
from headroom.console.history import COLUMNS, TimeSeries
from headroom.console.pages import formatting as fmt
from headroom.console.pages import history_figure, sparkline
from headroom.console.read_model import ReadModel
from headroom.printable import printable
from support.console_world import START_S


def series(**columns: list[float]) -> TimeSeries:
    length = max(len(values) for values in columns.values())
    values = np.full((length, len(COLUMNS)), np.nan, dtype=np.float32)
    for name, column in columns.items():
        values[:, COLUMNS.index(name)] = column
    return TimeSeries(
        times_s=START_S - 10.0 * np.arange(length, 0, -1, dtype=np.float64), values=values
    )


def drawn(one: TimeSeries) -> str:
    return history_figure.draw(one, (), now_s=START_S, target_s=1.0, percentile=0.95)


def test_gap_in_samples_interrupts_line() -> None:
    one = series(arrivals_rps=[1.0, 2.0, math.nan, 3.0, 4.0])
    (line,) = re.findall(r'class="line load" d="([^"]*)"', drawn(one))
    assert line.count("M") == 2


def test_samples_above_target_are_marked() -> None:
    one = series(latency_s=[0.5, 1.5, math.inf], target_s=[1.0, 1.0, 1.0])
    (late,) = re.findall(r'class="late" d="([^"]*)"', drawn(one))
    assert late.count("m-2 -2") == 2


def test_samples_with_hidden_demand_or_retries_are_marked() -> None:
    one = series(
        arrivals_rps=[90.0, 160.0, 160.0, 374.0, math.nan], bound=[0.0, 1.0, 1.0, -1.0, 1.0]
    )
    (marks,) = re.findall(r'class="bound" d="([^"]*)"', drawn(one))
    assert (marks.count("l2.5 -3l2.5 3"), marks.count("l2.5 3l2.5 -3")) == (2, 1)
    assert json.loads(history_figure.readings(one))["bound"] == [0.0, 1.0, 1.0, -1.0, 1.0]


@pytest.mark.parametrize("empty", [series(arrivals_rps=[]), series(arrivals_rps=[math.nan])])
def test_figure_without_samples_is_empty(empty: TimeSeries) -> None:
    assert "nan" not in drawn(empty)
    assert sparkline.sparkline(empty, now_s=START_S) is None


def test_readings_are_valid_json(lived: ReadModel) -> None:
    said = json.loads(history_figure.readings(series(latency_s=[math.nan, math.inf, 0.25])))
    assert said["latency_s"] == [None, -1.0, 0.25]


@given(st.text(max_size=40), st.text(max_size=40))
def test_text_is_escaped_in_markup(within: str, value: str) -> None:
    made = tag("p", within, title=value)
    assert re.fullmatch(r'<p title="[^"<>]*">[^<>]*</p>', made, re.DOTALL)
    assert html.unescape(made) == f'<p title="{printable(value)}">{printable(within)}</p>'


@given(st.floats(0.0, 1e7), st.booleans())
def test_axis_has_few_round_ticks(high: float, whole: bool) -> None:
    axis = axes.linear(high, 100.0, 0.0, whole=whole)
    assert 2 <= len(axis.ticks) <= 6
    assert all(0.0 <= axis(value) <= 100.0 for value, _ in axis.ticks)
    assert axis.high >= high


def test_count_axis_has_zero_and_separate_ticks() -> None:
    axis = axes.counts(600.0, 60.0, 0.0)
    places = [axis(value) for value, _ in axis.ticks]
    assert places[0] == 60.0
    assert all(before - after > 10 for before, after in pairwise(places))


def test_step_path_keeps_each_value_until_the_next() -> None:
    assert path([(0, 1), (2, 1), (4, 3)], steps=True) == "M0 1H2H4V3"
    assert path([(0, 1), (1, math.nan), (2, 3), (3, 4)]) == "M0 1M2 3L3 4"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, fmt.UNKNOWN),
        (0.256, "0.256"),
        (12.34, "12.3"),
        (1234.0, f"1{fmt.NARROW}234"),
    ],
)
def test_number_has_three_digits(value: float | None, text: str) -> None:
    assert fmt.number(value) == text


@pytest.mark.parametrize(
    ("gone_s", "text"), [(-3, "0 s ago"), (59, "59 s ago"), (120, "2 min ago"), (7300, "2 h ago")]
)
def test_age_is_in_its_largest_unit(gone_s: float, text: str) -> None:
    assert fmt.ago(START_S - gone_s, START_S) == text
