"""Scores from counts and moves made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headroom.simulator.compiled.plant_layout import FINE_BUCKETS, FINE_LOG, FINE_START_S
from headroom.simulator.outcome import Move
from headroom.simulator.scores import count_flaps, fine_quantile


def counts(*latencies_s: tuple[float, int]) -> np.ndarray:
    table = np.zeros(FINE_BUCKETS, dtype=np.int64)
    for latency_s, count in latencies_s:
        table[int(math.log(latency_s / FINE_START_S) / FINE_LOG)] += count
    return table


@pytest.mark.parametrize(
    ("answered", "unanswered", "ratio", "expected_s"),
    [
        pytest.param([(0.1, 95), (1.0, 5)], 0, 0.95, 0.1, id="just within the fast"),
        pytest.param([(0.1, 95), (1.0, 5)], 0, 0.951, 1.0, id="just beyond"),
        pytest.param([(0.1, 95)], 5, 0.95, 0.1, id="five lost of a hundred"),
        pytest.param([(0.1, 95)], 6, 0.95, math.inf, id="six lost: no latency at all"),
        pytest.param([], 1, 0.5, math.inf, id="nothing answered"),
    ],
)
def test_percentile_counts_unanswered_requests_as_infinite(
    answered: list[tuple[float, int]], unanswered: int, ratio: float, expected_s: float
) -> None:
    found_s = fine_quantile(counts(*answered), unanswered, ratio)
    assert found_s == pytest.approx(expected_s, rel=0.011)


def test_percentile_without_requests_is_nan() -> None:
    assert math.isnan(fine_quantile(counts(), 0, 0.95))


def moves(*path: tuple[float, int]) -> list[Move]:
    """From 4 replicas, to this many at such times."""
    found, before = [], 4
    for time_s, after in path:
        found.append(Move(time_s=time_s, before=before, after=after, reason="", message=""))
        before = after
    return found


@pytest.mark.parametrize(
    ("path", "flaps"),
    [
        pytest.param([(0, 5), (10, 6)], 0, id="only up"),
        pytest.param([(0, 3), (90, 4)], 1, id="up again within 30 s of start and a minute"),
        pytest.param([(0, 3), (90.1, 4)], 0, id="later than that"),
        pytest.param([(0, 5), (10, 3)], 0, id="down after up is none"),
        pytest.param([(0, 3), (10, 4), (20, 5)], 2, id="each step up counts"),
        pytest.param([(0, 3), (80, 2), (160, 3)], 1, id="from the last step down"),
        pytest.param([], 0, id="nothing moved"),
    ],
)
def test_scale_up_soon_after_scale_down_is_a_flap(
    path: list[tuple[float, int]], flaps: int
) -> None:
    assert count_flaps(moves(*path), cold_start_s=30.0) == flaps
