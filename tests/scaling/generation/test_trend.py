"""The first rise of a generating service is seen within minutes; noise and jumps are none."""

from __future__ import annotations

from statistics import fmean

import pytest

from headroom.scaling.forecast.forecast import Forecast
from headroom.scaling.forecast.trend import rising
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.tokens import Target, TokenTargets
from scaling.forecast.test_trend import Load, constant, doubling, wandering, watched
from support.fakes_scaling import policy

START_S = 300.0
EARLY_S = (160.0, 240.0, 320.0, 440.0)
"""Before the history shows how much the growth over 150 s varies."""
TOKENS = policy(token_targets=TokenTargets(first_token=Target(percentile=0.95, seconds=1.5)))


@pytest.mark.parametrize("seed", range(3))
def test_first_rise_is_seen_within_five_minutes(seed: int) -> None:
    seen = watched(doubling(300.0, from_s=0.0), 300.0, seed=seed)
    assert rising(seen, generates=True) is not None
    assert rising(seen) is None


def jump_after(time_s: float) -> Load:
    return lambda now_s: 16.0 if now_s < time_s else 48.0


@pytest.mark.parametrize("load", [constant, jump_after(120.0), jump_after(200.0)])
def test_first_minutes_without_a_rise_have_no_trend(load: Load) -> None:
    seen = (watched(load, seconds, seed=seed) for seed in range(10) for seconds in EARLY_S)
    assert not any(rising(one, generates=True) for one in seen)


def test_first_minutes_of_a_load_that_wanders_seldom_have_a_trend() -> None:
    found = sum(
        rising(watched(wandering(0.4, 120.0, seed), seconds, seed=seed), generates=True) is not None
        for seed in range(25)
        for seconds in EARLY_S
    )
    assert found <= 4


def expected_rps(policy: Policy) -> float:
    """Return the rate to add replicas for, five minutes after a load began to double as often."""
    forecast, history = Forecast(), watched(doubling(300.0, from_s=0.0), 300.0)
    for now_s, rate_rps in zip(history.times_s, history.measured_rps, strict=True):
        forecast = forecast.observe(policy, float(now_s), float(rate_rps), None, START_S)
    rate_rps = float(history.measured_rps[-1])
    return (
        forecast.expected(policy, 300.0, rate_rps, None, START_S).later.for_ceiling_rps / rate_rps
    )


def test_only_services_with_promises_on_tokens_expect_a_first_rise_to_go_on() -> None:
    assert expected_rps(TOKENS) > 1.5
    assert expected_rps(policy()) == pytest.approx(1.0, abs=0.1)


def highest_rps(seed: int) -> float:
    """The most that is expected of the demo's steps, whose last is the highest (5/s)."""

    def steps(now_s: float) -> float:
        return (1.0, 2.0, 3.5, 5.0)[min(3, int(now_s / 60.0))]

    forecast, history, highest = Forecast(), watched(steps, 240.0, seed=seed), 0.0
    for now_s, rate_rps in zip(history.times_s, history.measured_rps, strict=True):
        at_s, rate = float(now_s), float(rate_rps)
        forecast = forecast.observe(TOKENS, at_s, rate, None, 10.0)
        later = forecast.expected(TOKENS, at_s, rate, None, 10.0).later
        highest = max(highest, later.for_latency_rps)
    return highest


def test_first_rise_in_steps_is_extended_over_the_start_alone() -> None:
    assert fmean(highest_rps(seed) for seed in range(12)) < 7.6


def test_rise_after_a_steady_hour_is_not_the_first() -> None:
    trends = [
        rising(watched(doubling(300.0, from_s=from_s), from_s + 300.0), generates=True)
        for from_s in (0.0, 3300.0)
    ]
    assert [trend is not None and trend.first for trend in trends] == [True, False]
    assert None not in trends
