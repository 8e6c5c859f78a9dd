"""The stable rate: the longest window that no shorter one contradicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.forecast.rate_history import LONGEST_WINDOW_S, STEP_S, WINDOW_S, RateHistory


def history(*rates_rps: float) -> RateHistory:
    """One rate per step, from 0 s on."""
    found = RateHistory()
    for index, rate_rps in enumerate(rates_rps):
        found = found.add(STEP_S * index, rate_rps)
    return found


def error_rps(rate_rps: float, window_s: float) -> float:
    return 2.0 * math.sqrt(rate_rps / window_s)


@pytest.mark.parametrize(("window_s", "mean_rps"), [(10.0, 6.0), (20.0, 5.0), (3600.0, 3.0)])
def test_mean_rate_of_the_last_seconds(window_s: float, mean_rps: float) -> None:
    assert history(0.0, 2.0, 4.0, 6.0).mean_rps(window_s) == pytest.approx(mean_rps)


def test_mean_rate_without_any_is_none() -> None:
    assert RateHistory().mean_rps(300.0) == 0.0


def test_stable_rate_of_a_constant_load_becomes_more_precise() -> None:
    for steps, window_s in ((1, 30), (2, 60), (7, 60), (8, 120), (60, 480), (360, 480)):
        found = history(*[100.0] * steps).stable_rate(STEP_S * steps, 100.0)
        assert found.rate_rps == pytest.approx(100.0)
        assert found.error_rps == pytest.approx(error_rps(100.0, window_s)), steps


def test_stable_rate_ignores_noise() -> None:
    counts = np.random.default_rng(1).poisson(100.0 * WINDOW_S, 60) / WINDOW_S
    known = history(*counts)
    found = known.stable_rate(600.0, float(counts[-1]))
    assert abs(found.rate_rps - 100.0) < 0.6 < np.std(counts)
    # at a window's two deviations too much it is still the same load
    assert known.stable_rate(600.0, 103.6).rate_rps == pytest.approx(found.rate_rps, abs=0.2)


@pytest.mark.parametrize(("now_rps", "moved"), [(104.0, False), (110.0, True), (90.0, True)])
def test_stable_rate_of_a_changing_load_uses_the_shortest_window(
    now_rps: float, moved: bool
) -> None:
    # 100/s: two deviations are 3.65 at 30 s and 2.58 at 60 s, whose mean is 102.5 at 110/s now
    found = history(*[100.0] * 60).stable_rate(600.0, now_rps)
    assert (found.rate_rps == now_rps) == moved


def test_stable_rate_after_a_step_grows_its_window_again() -> None:
    rates = [100.0] * 60 + [200.0] * 12  # two minutes ago
    found = history(*rates).stable_rate(720.0, 200.0)
    assert found.rate_rps == pytest.approx(200.0)
    assert found.error_rps == pytest.approx(error_rps(200.0, 120.0))


def test_rate_history_bridges_a_short_gap_and_restarts_after_a_long_one() -> None:
    known = history(*[100.0] * 59, 110.0)
    bridged = known.add(590.0 + 41.0, 150.0)
    assert bridged.measured_rps[-4:].tolist() == [120.0, 130.0, 140.0, 150.0]
    assert bridged.times_s[-4:] == pytest.approx([600.25, 610.5, 620.75, 631.0])
    assert len(known.add(590.0 + 300.0, 100.0)) == 60 + 30
    for history_, at_s in ((known, 631.0), (bridged, 641.0)):  # the gap itself proves nothing
        found = history_.stable_rate(at_s, 150.0)
        assert found.error_rps == pytest.approx(error_rps(150.0, 30.0))
    later = [bridged.rate_after(580.0, after_s) for after_s in (10.0, 30.0, 51.0)]
    assert later == [110.0, None, 150.0]
    assert len(known.add(590.0 + 301.0, 100.0)) == 1


@given(st.lists(st.floats(0.0, 1e4), min_size=1, max_size=40))
def test_restored_stable_rates_are_within_the_error_of_the_measured_ones(
    rates: list[float],
) -> None:
    found = RateHistory.restored(5000.0, rates, 3)
    assert found.times_s[-1] == 5000.0
    assert found.measured_rps[::3] == pytest.approx(rates, rel=1e-6)
    errors = 2.0 * np.sqrt(found.measured_rps / WINDOW_S)
    allowed = errors + 2.0 * np.sqrt(found.stable_rps / WINDOW_S)
    assert (abs(found.stable_rps - found.measured_rps) <= allowed * (1 + 1e-5) + 1e-6).all()


@pytest.mark.parametrize("jump", [1.0, 1.02, 1.5])
def test_restored_stable_rates_are_those_of_a_history_that_was_observed(jump: float) -> None:
    counts = np.random.default_rng(3).poisson(100.0 * WINDOW_S, 120) / WINDOW_S
    counts[60:] *= jump
    seen = history(*np.interp(np.arange(358), 3 * np.arange(120), counts).tolist())
    found = RateHistory.restored(3570.0, counts.tolist(), 3)
    assert found.measured_rps == pytest.approx(seen.measured_rps)
    late = slice(48, None)  # before, a window may begin a step before the history
    assert found.stable_rps[late] == pytest.approx(seen.stable_rps[late], rel=1e-5)


def test_rate_history_keeps_rates_one_step_apart() -> None:
    known = history(5.0)
    assert known.add(STEP_S - 0.1, 9.0) is known
    assert known.add(STEP_S, 9.0).measured_rps.tolist() == [5.0, 9.0]
    assert known.rate_after(0.0, 10.0) is None
    assert known.add(STEP_S, 9.0).rate_after(0.0, 10.0) == 9.0


@given(
    rates=st.lists(st.floats(0.0, 1e4), max_size=80),
    now_rps=st.floats(0.0, 1e4),
)
def test_stable_rate_is_within_the_error_of_the_measured_one(
    rates: list[float], now_rps: float
) -> None:
    found = history(*rates).stable_rate(STEP_S * len(rates), now_rps)
    assert error_rps(found.rate_rps, LONGEST_WINDOW_S) <= found.error_rps * (1 + 1e-9)
    allowed_rps = error_rps(now_rps, WINDOW_S) + found.error_rps
    assert abs(found.rate_rps - now_rps) <= allowed_rps * (1 + 1e-6) + 1e-9
