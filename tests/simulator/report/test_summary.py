"""Aggregation over seeds, cost against the clairvoyant, and the front: numbers by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.simulator.report.comparison import dominates, estimate, family, front, is_bound, t_975
from headroom.simulator.report.summary import Summary, summarized
from support.fakes_outcome import outcome


@dataclass(frozen=True)
class Point:
    misses: float
    cost: float


def only(summaries: tuple[Summary, ...], autoscaler: str) -> Summary:
    return next(each for each in summaries if each.autoscaler == autoscaler)


def test_estimate_of_seeds_has_students_interval() -> None:
    # Standard deviation 1, two degrees of freedom: 4.303 / sqrt(3) = 2.4843.
    found = estimate([1.0, 2.0, 3.0])
    assert found.mean == 2.0
    assert found.half_width == pytest.approx(2.4843, abs=1e-4)


@pytest.mark.parametrize(
    ("values", "mean"), [([5.0], 5.0), ([1.0, math.inf], math.inf), ([1.0, math.nan], math.nan)]
)
def test_estimate_of_one_or_infinite_value_has_no_interval(
    values: list[float], mean: float
) -> None:
    found = estimate(values)
    assert found.mean == pytest.approx(mean, nan_ok=True)
    assert found.half_width is None


@pytest.mark.parametrize(
    ("degrees", "point"),
    [(1, 12.706), (4, 2.776), (30, 2.042), (39, 2.042), (60, 2.0), (999, 1.98)],
)
def test_t_quantile_between_table_rows_is_the_wider_one(degrees: int, point: float) -> None:
    assert t_975(degrees) == point


def test_summary_of_seeds_is_one_row_with_intervals() -> None:
    rows = summarized([outcome(seed=1, within=980), outcome(seed=2, within=960)])
    assert len(rows) == 1
    assert rows[0].seeds == (1, 2)
    assert rows[0].attainment.mean == pytest.approx(0.97)
    # Standard deviation 0.01 sqrt(2), one degree of freedom: 12.706 x 0.01.
    assert rows[0].attainment.half_width == pytest.approx(0.12706)
    assert rows[0].misses == pytest.approx(0.03)
    assert rows[0].violation_minutes.mean == 4.0


def test_summary_counts_a_repeated_seed_once() -> None:
    rows = summarized([outcome(within=0), outcome(within=1000)])
    assert rows[0].seeds == (1,)
    assert rows[0].attainment.mean == 1.0


def test_clairvoyant_ratio_is_computed_seed_by_seed() -> None:
    rows = summarized(
        [
            outcome("clairvoyant", seed=1, gpu_hours=2.0),
            outcome("clairvoyant", seed=2, gpu_hours=4.0),
            outcome("headroom", seed=1, gpu_hours=3.0),
            outcome("headroom", seed=2, gpu_hours=4.0),
            outcome("headroom", seed=3, gpu_hours=99.0),
        ]
    )
    ratio = only(rows, "headroom").clairvoyant_ratio
    assert ratio is not None
    assert ratio.mean == pytest.approx(1.25)  # of 1.5 and 1.0, not of 7 / 6


def test_clairvoyant_ratio_without_clairvoyant_is_none() -> None:
    assert summarized([outcome()])[0].clairvoyant_ratio is None


def test_clairvoyant_ratio_ignores_other_scenarios() -> None:
    rows = summarized([outcome("clairvoyant", scenario="step"), outcome("headroom")])
    assert only(rows, "headroom").clairvoyant_ratio is None


def test_summaries_are_grouped_by_service() -> None:
    rows = summarized(
        [outcome("a", service="one"), outcome("a", service="two"), outcome("b", service="one")]
    )
    assert [(row.service, row.autoscaler) for row in rows] == [
        ("one", "a"),
        ("one", "b"),
        ("two", "a"),
    ]


def test_front_leaves_out_bounds_and_dominated_points() -> None:
    rows = summarized(
        [
            outcome("clairvoyant", within=1000, gpu_hours=1.0),
            outcome("cheap", within=900, gpu_hours=2.0),
            outcome("good", within=990, gpu_hours=4.0),
            outcome("worse", within=890, gpu_hours=3.0),
        ]
    )
    assert {row.autoscaler for row in rows if row.on_front} == {"cheap", "good"}


def test_front_of_points_by_hand() -> None:
    cheap, good, worse, tie = Point(0.1, 1), Point(0.01, 3), Point(0.1, 2), Point(0.01, 3)
    assert front([good, worse, cheap, tie]) == (cheap, good, tie)
    assert dominates(cheap, worse)
    assert not dominates(good, tie)
    assert not dominates(cheap, good)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_front_of_any_points_is_not_dominated(pairs: list[tuple[int, int]]) -> None:
    points = [Point(misses, cost) for misses, cost in pairs]
    expected = [p for p in points if not any(dominates(other, p) for other in points)]
    found = front(points)
    assert sorted((p.cost, p.misses) for p in expected) == [(p.cost, p.misses) for p in found]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("hpa-queue target=4", "hpa-queue"), ("clairvoyant", "clairvoyant"), ("keda(4)", "keda")],
)
def test_family_of_autoscaler_ignores_settings(name: str, expected: str) -> None:
    assert family(name) == expected
    assert is_bound(name) == (expected == "clairvoyant")
