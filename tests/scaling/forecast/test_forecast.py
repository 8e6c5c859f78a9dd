"""The forecast: what followed similar rates, how much of a burst remains."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.forecast.analog_forecast import (
    AnalogForecast,
    FutureRatios,
    rate_after,
    ratio_of,
)
from headroom.scaling.forecast.forecast import Expected, Forecast, Rates
from headroom.scaling.forecast.rate_history import STEP_S, Vector
from scaling.forecast.rate_histories import START_S, history
from support.fakes_scaling import policy

POLICY = policy()


def expected(analogs: AnalogForecast, now_s: float, rate_rps: float) -> Expected:
    forecast = Forecast(analogs=analogs)
    return forecast.expected(POLICY, now_s, rate_rps, None, START_S)


def error_rps(rate_rps: float, window_s: float) -> float:
    """Two deviations of a count, over its window."""
    return 2.0 * math.sqrt(rate_rps / window_s)


def every_five_minutes(high_s: float) -> Callable[[float], float]:
    """`high_s` seconds at 400/s, then 200/s, over and over."""
    return lambda now_s: 400.0 if now_s % 300.0 < high_s else 200.0


def single(values: list[float]) -> Vector:
    return np.array(values, dtype=np.float32)


@pytest.mark.parametrize(
    ("after", "before", "weights", "share", "ratio"),
    [
        ([], [5.0], [1.0], 0.7, 1.0),  # nothing followed: it stays
        ([10.0], [5.0], [1.0], 0.7, 1.0),  # 1 against 6 of staying: 0.7 of 7 is 4.9
        ([10.0], [5.0], [30.0], 0.7, 2.0),  # 36 x 0.7 is beyond the 6 of staying
        ([10.0], [5.0], [14.0], 0.3, 1.0),  # 20 x 0.3 = 6 is just staying
        ([2.5, 10.0], [5.0, 5.0], [12.0, 12.0], 0.4, 0.5),  # 30 x 0.4 = 12
        ([2.5, 10.0], [5.0, 5.0], [12.0, 12.0], 0.6, 1.0),
        ([2.5, 10.0], [5.0, 5.0], [12.0, 12.0], 0.61, 2.0),
        ([2.5, 10.0], [5.0, 5.0], [0.0, 0.0], 0.99, 1.0),  # nothing was like now
    ],
)
def test_future_ratios_quantile_is_weighted(
    after: list[float], before: list[float], weights: list[float], share: float, ratio: float
) -> None:
    million = single([1e6])  # so busy that nothing is quiet
    followed = FutureRatios.of(million * single(after), million * single(before))
    assert followed.quantile(single(weights), share) == pytest.approx(ratio, rel=1e-6)


def test_forecast_without_analogs_is_the_present_rate() -> None:
    seven = Rates(for_ceiling_rps=7.0, for_latency_rps=7.0)
    assert expected(AnalogForecast(), 0.0, 7.0) == Expected(later=seven, most=seven, burst_rps=None)
    steady = history(lambda _: 200.0, 1800.0)
    found = expected(steady, 1800.0, 600.0)  # never seen
    assert found.later == found.most
    assert found.later.for_ceiling_rps == pytest.approx(600.0 + error_rps(600.0, 30.0))
    assert found.later.for_latency_rps == found.later.for_ceiling_rps


@pytest.mark.parametrize(
    ("usual_rps", "now_rps", "latency_rps"),
    [
        (0.2, 8 / 30, 0.243),  # 8 instead of 6 requests: two deviations of 8 minutes are more
        (0.2, 13 / 30, 0.313),  # 13 show 9.4 at least
        (100.0, 104.0, 102.1),  # 3120 show 3064 at least
    ],
)
def test_forecast_of_a_high_window_is_what_it_surely_shows(
    usual_rps: float, now_rps: float, latency_rps: float
) -> None:
    found = expected(history(lambda _: usual_rps, 1800.0), 1800.0, now_rps)
    assert found.later.for_latency_rps == pytest.approx(latency_rps, rel=0.01)
    assert found.most.for_latency_rps == pytest.approx(latency_rps, rel=0.01)


def test_forecast_at_a_short_peak_is_the_rate_after_it() -> None:
    peaks = every_five_minutes(60.0)
    found = expected(history(peaks, 2450.0), 2450.0, 400.0)  # 50 s into the ninth
    sure = 1 + error_rps(400.0, 60.0) / 400.0
    # once a replica serves it is over
    assert found.later.for_ceiling_rps == pytest.approx(200.0 * sure, rel=1e-3)
    # and never less than what arrives
    assert found.most.for_ceiling_rps == pytest.approx(400.0 * sure, rel=1e-3)


def test_forecast_in_a_short_dip_is_the_rate_after_it() -> None:
    dips = every_five_minutes(240.0)
    found = expected(history(dips, 2450.0 + 240.0), 2690.0, 200.0)
    sure = 1 + error_rps(200.0, 60.0) / 200.0
    assert found.later.for_ceiling_rps == pytest.approx(400.0 * sure, rel=1e-3)
    assert found.most.for_ceiling_rps == pytest.approx(400.0 * sure, rel=1e-3)


def test_forecast_of_a_rising_load_rises() -> None:
    # so many that chance is nothing: half a minute is known to 4e-6
    rising = history(lambda now_s: 1e10 * math.exp(now_s / 3600.0), 1800.0)
    now_rps = 1e10 * math.exp(0.5)
    found = expected(rising, 1800.0, now_rps)
    assert found.later.for_latency_rps == pytest.approx(now_rps * math.exp(90.0 / 3600.0), rel=1e-5)
    assert found.most.for_latency_rps == pytest.approx(now_rps * math.exp(120.0 / 3600.0), rel=1e-5)


def test_forecast_of_a_falling_load_ignores_rising_analogs() -> None:
    hill = history(lambda now_s: 100.0 * math.exp(min(now_s, 3600.0 - now_s) / 300.0), 2400.0)
    weights = hill.weights(100.0 * math.exp(4.0), 30.0)
    # 10 % in 30 s up, 10 % down now: two widths of the kernel apart
    assert weights[120] == pytest.approx(math.exp(-2.0), rel=1e-4)
    assert weights[240] == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("since_s", [700.0, 900.0, 1100.0])
@pytest.mark.parametrize(("period_s", "low_rps"), [(5400.0, 25.0), (4800.0, 12.0)])
def test_forecast_of_a_slow_rise_ignores_falling_analogs(
    period_s: float, low_rps: float, since_s: float
) -> None:
    def wave(now_s: float) -> float:
        """From the lowest rate to four times that, and back: of its rise the hour saw nothing."""
        return low_rps * (2.5 - 1.5 * math.cos(2 * math.pi * now_s / period_s))

    forecast, now_s = Forecast(), period_s + since_s
    for time_s in np.arange(0.0, now_s + 1.0, STEP_S):
        forecast = forecast.observe(POLICY, float(time_s), wave(float(time_s)), None, START_S)
    found = forecast.expected(POLICY, now_s, wave(now_s), None, START_S)
    assert found.later.for_latency_rps == pytest.approx(wave(now_s + 90.0), rel=0.03)


def test_forecast_while_nothing_arrives_is_what_followed_such_times() -> None:
    # six minutes without load, then one with 20/s
    work = history(lambda now_s: 20.0 if now_s % 420.0 >= 360.0 else 0.0, 2600.0)
    soon = expected(work, 2600.0, 0.0)
    assert soon.later.for_ceiling_rps == 0.0
    assert soon.most.for_ceiling_rps == 0.0, "two minutes hold it one time in three"
    weights = work.weights(0.0, 30.0)
    assert work.most is not None
    bold, cautious = (work.most.quantile(weights, share) for share in (0.5, 0.9))
    assert rate_after(bold, 0.0) == 0.0
    assert rate_after(cautious, 0.0) == pytest.approx(20.0)


@pytest.mark.parametrize("record_ratio", [1.0, 1.5])
def test_forecast_of_a_returning_load_is_bounded_by_what_the_hour_has_been(
    record_ratio: float,
) -> None:
    """Its window is nearly empty at first: one request in 30 s, and 8/s half a minute later."""
    cycle_s, ramp_s = 240.0, 30.0

    def returning(now_s: float) -> float:
        into_s = now_s % cycle_s - 120.0
        return 8.0 * min(1.0, max(0.0, into_s / ramp_s))

    tuning = replace(POLICY.tuning, record_ratio=record_ratio)
    forecast = Forecast(analogs=history(returning, 2760.0))
    found = forecast.expected(replace(POLICY, tuning=tuning), 2762.0, 0.5, None, START_S)
    most_rps = record_ratio * (8.0 + error_rps(8.0, 30.0))
    assert found.later.for_ceiling_rps == pytest.approx(most_rps)
    assert found.most.for_latency_rps == pytest.approx(most_rps)


def test_few_requests_are_alike_and_quiet_rates_are_not_busy() -> None:
    quiet = history(lambda now_s: 0.5 if now_s < 1200.0 else 20.0, 2400.0)
    # 0.1/s x 30 s are three requests: 0.5/s may look like that, 20/s may not
    weights = quiet.weights(0.1, 30.0)
    assert weights[60] > 0.5 > 1e-3 > weights[-1]
    assert quiet.weights(0.0, 30.0)[60] > 0.1


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e6))
def test_rate_after_a_ratio_is_the_rate_that_it_was_made_of(after: float, before: float) -> None:
    made = rate_after(ratio_of(after, before), before)
    assert made == pytest.approx(after, rel=1e-9, abs=1e-6)


def test_forecast_after_a_long_gap_restarts() -> None:
    known = history(every_five_minutes(60.0), 1800.0)
    assert len(known.observe(1830.0, 200.0, START_S).history) == 184
    assert len(known.observe(2120.0, 200.0, START_S).history) == 1


def test_forecast_of_an_hour_needs_13_kilobytes() -> None:
    long = history(lambda _: 5.0, 5000.0)
    assert long.later is not None
    assert long.most is not None
    rates = (long.history.measured_rps, long.history.stable_rps, long.logarithms, long.slopes)
    kept = [long.history.times_s.nbytes, *(each.nbytes for each in rates)]
    kept += [each.ratios.nbytes + each.order.nbytes for each in (long.later, long.most)]
    assert sum(kept) < 13_000
    assert len(long.history) == 361
    assert long.history.times_s[-1] - long.history.times_s[0] == 3600.0


def test_forecast_of_an_idle_service_is_zero() -> None:
    idle = history(lambda now_s: 0.0 if now_s > 600.0 else 5.0, 1800.0)
    nothing = Rates(for_ceiling_rps=0.0, for_latency_rps=0.0)
    assert expected(idle, 1800.0, 0.0) == Expected(later=nothing, most=nothing, burst_rps=None)
    woken = expected(idle, 1800.0, 5.0)
    assert 0.0 <= woken.later.for_latency_rps <= woken.most.for_latency_rps
    assert woken.most.for_ceiling_rps == pytest.approx(5.0 + error_rps(5.0, 30.0))


@given(
    rates=st.lists(st.floats(0.0, 1000.0), min_size=1, max_size=60),
    now_rps=st.floats(0.01, 1000.0),
    start_s=st.floats(0.0, 300.0),
)
def test_forecast_stays_within_observed_ratios(
    rates: list[float], now_rps: float, start_s: float
) -> None:
    analogs = AnalogForecast()
    for index, rate_rps in enumerate(rates):
        analogs = analogs.observe(STEP_S * index, rate_rps, start_s)
    forecast = Forecast(analogs=analogs)
    found = forecast.expected(POLICY, STEP_S * len(rates), now_rps, None, start_s)
    assert found.most.for_latency_rps >= now_rps
    assert 0.0 <= found.later.for_ceiling_rps <= found.later.for_latency_rps < math.inf
    steady = analogs.history.stable_rps
    largest = max(1.0, *(after / max(before, 1e-9) for before in steady for after in steady))
    now = analogs.history.stable_rate(STEP_S * len(rates), now_rps)
    most_rps = max(now_rps, now.rate_rps + now.error_rps)
    assert found.later.for_latency_rps <= most_rps * largest * (1 + 1e-6)
