"""A significant rise is extrapolated; noise, jumps and loads that return are not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.forecast.forecast import Forecast
from headroom.scaling.forecast.rate_history import STEP_S, WINDOW_S, RateHistory
from headroom.scaling.forecast.trend import LARGEST, Trend, rising
from headroom.scaling.values.tuning import Component, Tuning
from support.fakes_scaling import policy

Load = Callable[[float], float]


def watched(load: Load, seconds: float, *, seed: int = 1) -> RateHistory:
    """The rate of a 30 s window every 10 s, from Poisson arrivals."""
    rng = np.random.default_rng(seed)
    history, counts = RateHistory(), [0.0, 0.0, 0.0]
    for now_s in np.arange(STEP_S, seconds + 1, STEP_S).tolist():
        counts = [*counts[1:], float(rng.poisson(STEP_S * load(now_s - STEP_S / 2)))]
        history = history.add(now_s, sum(counts) / WINDOW_S)
    return history


def doubling(every_s: float, *, from_s: float) -> Load:
    return lambda now_s: 16.0 * 2.0 ** (max(0.0, now_s - from_s) / every_s)


def constant(_now_s: float) -> float:
    return 16.0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("every_s", "after_s"), [(600.0, 600.0), (300.0, 420.0)])
def test_load_that_doubles_is_expected_to_go_on(every_s: float, after_s: float, seed: int) -> None:
    load, now_s = doubling(every_s, from_s=1800.0), 1800.0 + after_s
    trend = rising(watched(load, now_s, seed=seed))
    assert trend is not None
    assert trend.rate_rps == pytest.approx(load(now_s - 15.0), rel=0.08)
    ahead = trend.expected_rps(now_s + 180.0) / trend.rate_rps
    rise = 2 ** (195.0 / every_s) - 1
    assert 0.6 * rise < ahead - 1 < 1.2 * rise


def test_line_is_expected_to_stay_a_line() -> None:
    trend = rising(watched(lambda now_s: 100.0 + max(0.0, now_s - 1800.0), 2400.0))
    assert trend is not None
    assert not trend.exponential
    assert trend.expected_rps(2600.0) == pytest.approx(900.0, rel=0.03)


@pytest.mark.parametrize(
    ("load", "seconds"),
    [
        (constant, 3600.0),
        (lambda now_s: 16.0 if now_s < 1990.0 else 48.0, 2100.0),  # a jump
        (lambda now_s: 16.0 if now_s < 1803.0 else 48.0, 2100.0),  # within a window
        (lambda now_s: 48.0 if now_s > 1980.0 else 5.0, 2040.0),
        (lambda now_s: 40.0 - now_s / 120.0, 3600.0),  # it falls
        (lambda _: 0.0, 3600.0),
        (doubling(600.0, from_s=0.0), 420.0),  # nothing is known of its noise
    ],
)
def test_load_that_does_not_rise_has_no_trend(load: Load, seconds: float) -> None:
    assert sum(rising(watched(load, seconds, seed=seed)) is not None for seed in range(20)) <= 1


def trends_after_gap(load: Load, gap_s: float, seed: int) -> list[bool]:
    """Return whether the load seems to rise, every two minutes after a gap in the metrics."""
    seen, known, found = watched(load, 1920.0 + gap_s, seed=seed), RateHistory(), []
    for time_s, rate_rps in zip(seen.times_s.tolist(), seen.measured_rps.tolist(), strict=True):
        if not 1800.0 < time_s < 1800.0 + gap_s:
            known = known.add(time_s, rate_rps)
            found.append(rising(known) is not None)
    return found[-12:]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gap_s", [60.0, 120.0, 240.0, 300.0])
def test_gap_in_the_metrics_makes_no_rise_and_hides_none(gap_s: float, seed: int) -> None:
    """A straight line bridges the gap: it would be the steadiest of all rises."""

    def jump(now_s: float) -> float:
        return 50.0 if now_s < 1800.0 + gap_s / 2 else 100.0

    assert not any(trends_after_gap(jump, gap_s, seed))
    assert sum(trends_after_gap(doubling(300.0, from_s=1600.0), gap_s, seed)) >= 9


def wandering(cv: float, memory_s: float, seed: int) -> Load:
    """A rate whose logarithm wanders around its mean (an autoregressive process)."""
    rng, kept = np.random.default_rng(seed), math.exp(-STEP_S / memory_s)
    levels = [0.0]
    for _ in range(500):
        levels.append(kept * levels[-1] + cv * math.sqrt(1 - kept * kept) * float(rng.normal()))
    return lambda now_s: 50.0 * math.exp(levels[int(now_s / STEP_S)])


def test_load_that_wanders_seldom_has_a_trend() -> None:
    found = sum(
        rising(watched(wandering(0.4, 120.0, seed), seconds, seed=seed)) is not None
        for seed in range(15)
        for seconds in (900.0, 1800.0, 2700.0, 3600.0)
    )
    assert found <= 2


def test_rise_is_extended_no_further_than_it_has_been_seen() -> None:
    trend = Trend(time_s=0.0, rate_rps=10.0, growth_per_s=0.004, exponential=True, seen_s=150.0)
    assert trend.expected_rps(-5.0) == 10.0
    assert trend.expected_rps(150.0) == trend.expected_rps(900.0) == pytest.approx(18.2, abs=0.1)
    steep = Trend(time_s=0.0, rate_rps=10.0, growth_per_s=0.1, exponential=False, seen_s=600.0)
    assert steep.expected_rps(500.0) == 10.0 * LARGEST


def learned(load: Load, seconds: float, tuning: Tuning) -> Forecast:
    forecast, history = Forecast(), watched(load, seconds)
    for now_s, rate_rps in zip(history.times_s, history.measured_rps, strict=True):
        at_s, rate = float(now_s), float(rate_rps)
        forecast = forecast.observe(policy(tuning=tuning), at_s, rate, None, 180.0)
    return forecast


def test_forecast_without_analogs_follows_the_rise() -> None:
    rate_rps = 16.0 * 2.0**1.5
    forecast = learned(doubling(600.0, from_s=1800.0), 2715.0, Tuning())
    found = forecast.expected(policy(), 2715.0, rate_rps, None, 180.0)
    assert found.later.for_ceiling_rps > 1.2 * rate_rps
    assert found.later.occasion == " as the rise of the last 600 s goes on"
    assert found.most.for_ceiling_rps >= found.later.for_ceiling_rps
    without = Tuning(without=frozenset({Component.TREND}))
    blind = learned(doubling(600.0, from_s=1800.0), 2715.0, without)
    assert blind.trend is None
    later = blind.expected(policy(), 2715.0, rate_rps, None, 180.0).later
    assert later.for_ceiling_rps < 1.15 * rate_rps
    assert later.occasion == ""


def test_rise_that_always_ended_is_not_extrapolated() -> None:
    """Eight minutes up, two down: what followed the earlier rises counts more than the trend."""

    def saw(now_s: float) -> float:
        return 100.0 * (1.0 + min(now_s % 600.0, 480.0) / 480.0 * (now_s % 600.0 < 480.0))

    now_s = 3600.0 + 460.0
    found = learned(saw, now_s, Tuning()).expected(policy(), now_s, saw(now_s - 15.0), None, 60.0)
    assert found.later.for_latency_rps < 150.0


@given(
    rates=st.lists(st.floats(0.0, 1000.0), max_size=80),
    ahead_s=st.floats(0.0, 2000.0),
)
def test_trend_rises_within_its_bound(rates: list[float], ahead_s: float) -> None:
    history = RateHistory()
    for index, rate_rps in enumerate(rates):
        history = history.add(STEP_S * index, rate_rps)
    trend = rising(history)
    if trend is not None:
        factor = trend.expected_rps(trend.time_s + ahead_s) / trend.rate_rps
        assert 1.0 <= factor <= LARGEST
