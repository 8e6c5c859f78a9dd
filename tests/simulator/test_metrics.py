"""The peers' Prometheus, with rows made by hand: presence, ranges, rates and quantiles."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

import numpy as np
import pytest

from headroom.simulator.compiled.plant_layout import BOUNDS_S, COLUMNS, Column
from headroom.simulator.metrics import Metrics, Row


def row(answered: Mapping[float, int] | None = None, **columns: float) -> Row:
    """One scrape of one pod: columns by name, and answers by their latency."""
    values = np.zeros(COLUMNS + len(BOUNDS_S))
    for name, value in columns.items():
        values[Column[name.upper()]] = value
    for latency_s, count in (answered or {}).items():
        values[COLUMNS + bisect_left(BOUNDS_S, latency_s)] += count
    return values


def stored(*scrapes: tuple[float, dict[str, Row]]) -> Metrics:
    metrics = Metrics(horizon_s=100.0)
    for now_s, pods in scrapes:
        rows = np.array(list(pods.values())).reshape(len(pods), COLUMNS + len(BOUNDS_S))
        metrics.scrape(now_s, tuple(pods), rows)
    return metrics


def test_instant_value_is_of_last_scrape_and_answering_pods() -> None:
    metrics = stored(
        (0, {"a": row(waiting=3), "b": row(waiting=5)}),
        (15, {"b": row(waiting=6), "c": row(waiting=7)}),
    )
    assert metrics.instant(Column.WAITING) == {"b": 6.0, "c": 7.0}
    assert metrics.scraped_s == 15


def test_scrape_without_answers_keeps_only_range_values() -> None:
    metrics = stored((0, {"a": row(waiting=3)}), (15, {}))
    assert metrics.instant(Column.WAITING) == {}
    assert metrics.average(Column.WAITING, 15, 30) == {"a": 3.0}


def test_range_keeps_samples_of_deleted_pod() -> None:
    metrics = stored(
        (0, {"a": row(waiting=1)}),
        (15, {"a": row(waiting=4), "b": row(waiting=10)}),
        (30, {"b": row(waiting=20)}),
    )
    assert metrics.average(Column.WAITING, 30, 15) == {"a": 4.0, "b": 15.0}
    assert metrics.largest(Column.WAITING, 30, 30) == {"a": 4.0, "b": 20.0}
    assert metrics.largest(Column.WAITING, 45, 15) == {"b": 20.0}


@pytest.mark.parametrize(
    ("now_s", "window_s", "expected"),
    [
        # 15 and 30 s lie in 10 to 40 s, 5 and 10 s from its ends: 60 in 15 s hold for all 30 s
        pytest.param(40, 30, {"a": 4.0}, id="both ends near: extended to both"),
        # from 0 s, 30 s after the window began: 90 in 30 s are extended by 7.5 s, not by 30 s
        pytest.param(30, 60, {"a": 90 * 37.5 / 30 / 60}, id="begins late: half an interval"),
        # 50 s after the last: 7.5 s at that end, and 10 s at the other
        pytest.param(80, 90, {"a": 90 * 47.5 / 30 / 90}, id="ended early: half an interval"),
        pytest.param(40, 15, {}, id="one sample"),
        pytest.param(60, 15, {}, id="no sample"),
    ],
)
def test_rate_needs_two_samples_and_is_extrapolated_to_window(
    now_s: float, window_s: float, expected: Mapping[str, float]
) -> None:
    metrics = stored(
        (0, {"a": row(arrivals=1000)}),
        (15, {"a": row(arrivals=1030)}),
        (30, {"a": row(arrivals=1090), "b": row(arrivals=50)}),
    )
    assert metrics.rate(Column.ARRIVALS, now_s, window_s) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        # 15 and 30 s in 10 to 40 s: 60 in 15 s, 10 s to the end; 20 before: 5 s back to zero
        pytest.param(20, 60 * 30 / 15 / 30, id="zero at the window's start: as far as it"),
        pytest.param(8, 60 * 27 / 15 / 30, id="zero 2 s before the first sample: no further"),
        pytest.param(0, 60 * 25 / 15 / 30, id="zero at the first sample: not at all"),
    ],
)
def test_rate_is_not_extrapolated_below_zero_counter(first: float, expected: float) -> None:
    metrics = stored(
        (15, {"a": row({0.1: int(first)}, arrivals=first)}),
        (30, {"a": row({0.1: int(first) + 60}, arrivals=first + 60)}),
    )
    assert metrics.rate(Column.ARRIVALS, 40, 30) == pytest.approx({"a": expected})


def test_quantile_weighs_new_pod_as_rate_does() -> None:
    metrics = stored(
        (15, {"a": row({0.1: 1000}), "b": row()}),
        (30, {"a": row({0.1: 1060}), "b": row({1.0: 60})}),
    )
    # both answered 60 in 15 s; a is extended by 15 s to both ends, b by 10 s to one
    upper = bisect_left(BOUNDS_S, 0.1)
    part = (30 + 25) / 2 / 30
    expected_s = BOUNDS_S[upper - 1] + part * (BOUNDS_S[upper] - BOUNDS_S[upper - 1])
    assert metrics.quantile(0.5, 40, 30) == pytest.approx(expected_s)


def test_quantile_of_all_pods_is_interpolated_in_its_bucket() -> None:
    fast, slow = 0.1, 1.0
    metrics = stored(
        (0, {"a": row(), "b": row()}),
        (30, {"a": row({fast: 80}), "b": row({slow: 20})}),
    )
    upper = bisect_left(BOUNDS_S, fast)
    # 80 of 100 lie in the bucket of 0.1 s: the median is 50/80 up that bucket
    expected_s = BOUNDS_S[upper - 1] + 50 / 80 * (BOUNDS_S[upper] - BOUNDS_S[upper - 1])
    assert metrics.quantile(0.5, 30, 60) == pytest.approx(expected_s)
    upper = bisect_left(BOUNDS_S, slow)
    expected_s = BOUNDS_S[upper - 1] + 15 / 20 * (BOUNDS_S[upper] - BOUNDS_S[upper - 1])
    assert metrics.quantile(0.95, 30, 60) == pytest.approx(expected_s)


def test_quantile_weighs_pods_by_their_rates() -> None:
    metrics = stored(
        (0, {"a": row({0.1: 1000})}),
        (30, {"a": row({0.1: 1060}), "b": row({1.0: 1000})}),
        (45, {"a": row({0.1: 1090}), "b": row({1.0: 1030})}),
    )
    # a: 90 in 45 s, extended to all 60 s, 2/s; b: 30 in 15 s, extended by 7.5 s, 45 / 60 s
    upper = bisect_left(BOUNDS_S, 0.1)
    part = (2 + 0.75) / 2 / 2
    expected_s = BOUNDS_S[upper - 1] + part * (BOUNDS_S[upper] - BOUNDS_S[upper - 1])
    assert metrics.quantile(0.5, 45, 60) == pytest.approx(expected_s)


@pytest.mark.parametrize(
    ("scrapes", "expected"),
    [
        pytest.param((), None, id="never scraped"),
        pytest.param(((0, {"a": row({0.1: 5})}),), None, id="one sample is no increase"),
        pytest.param(
            ((0, {"a": row({0.1: 5})}), (15, {"a": row({0.1: 5}, refused=9)})),
            None,
            id="only refused: no latency",
        ),
        pytest.param(
            ((0, {"a": row()}), (15, {"a": row({1e6: 5})})),
            BOUNDS_S[-2],
            id="beyond the grid: its last finite bound, as Prometheus says",
        ),
    ],
)
def test_quantile_without_answers_is_none(
    scrapes: tuple[tuple[float, dict[str, Row]], ...], expected: float | None
) -> None:
    assert stored(*scrapes).quantile(0.95, 15, 60) == expected


def test_restarted_store_is_empty() -> None:
    metrics = stored((0, {"a": row(arrivals=1)}), (15, {"a": row(arrivals=9)}))
    metrics.restart()
    assert metrics.scraped_s is None
    assert metrics.instant(Column.ARRIVALS) == {}
    assert metrics.rate(Column.ARRIVALS, 15, 60) == {}
    metrics.scrape(30, ("a",), np.array([row(arrivals=20)]))
    assert metrics.rate(Column.ARRIVALS, 30, 60) == {}
    metrics.scrape(45, ("a",), np.array([row(arrivals=35)]))
    # 15 in the 15 s since, extended by 7.5 s
    assert metrics.rate(Column.ARRIVALS, 45, 60) == {"a": 22.5 / 60}


def test_samples_older_than_horizon_are_dropped() -> None:
    metrics = Metrics(horizon_s=100.0)
    for step in range(1000):
        pods = ("a", "gone") if step < 10 else ("a",)
        metrics.scrape(float(step), pods, np.array([row(arrivals=2 * step)] * len(pods)))
    assert metrics.average(Column.ARRIVALS, 999, 2000).keys() == {"a"}
    oldest = min(metrics.average(Column.ARRIVALS, 999, 2000).values())
    assert oldest > 2 * (999 - 250)
    assert metrics.rate(Column.ARRIVALS, 999, 100) == {"a": 2.0}
