"""Peaks at regular times are expected; others are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headroom.scaling.forecast.forecast import Forecast, Rates
from headroom.scaling.forecast.peak import Peak
from headroom.scaling.forecast.peak_series import ExpectedPeak, next_peak
from headroom.scaling.forecast.periodic_peaks import PeriodicPeaks
from headroom.scaling.values.tuning import Component, Tuning
from support.fakes_scaling import Service, policy


def series(*began_s: float, peak_rps: float = 30.0) -> tuple[Peak, ...]:
    return tuple(
        Peak(began_s=at_s, before_rps=10.0, peak_rps=peak_rps, over=True) for at_s in began_s
    )


@pytest.mark.parametrize(
    ("began_s", "due_s"),
    [
        ((600.0, 1800.0), None),  # one distance says nothing
        ((600.0, 1800.0, 3000.0), 4200.0),
        ((600.0, 1800.0, 3011.0), 4216.5),  # 11 s of 1211 s: within 1 %
        ((600.0, 1800.0, 3030.0), None),
        ((600.0, 1180.0, 1820.0, 2390.0), None),  # four that are not punctual may be chance
        ((600.0, 1180.0, 1820.0, 2390.0, 3000.0), 3600.0),  # on the line through all
        ((600.0, 1800.0, 3000.0, 3700.0), None),  # the latest belongs to no series
        ((600.0, 1800.0, 3000.0, 3700.0, 4200.0), 5400.0),  # one between that belongs to none
        ((0.0, 300.0, 600.0, 900.0), 1200.0),  # and not twice 300 s
    ],
)
def test_three_peaks_at_equal_distances_are_a_series(
    began_s: tuple[float, ...], due_s: float | None
) -> None:
    assert [peak.at_s for peak in next_peak(series(*began_s))] == ([] if due_s is None else [due_s])


def test_next_peak_has_the_height_of_the_upper_fifth() -> None:
    few = (*series(600.0, peak_rps=90.0), *series(1800.0, 3000.0))
    assert next_peak(few) == (ExpectedPeak(at_s=4200.0, tolerance_s=12.0, rate_rps=90.0),)
    (more,) = next_peak((*few, *series(4200.0, 5400.0)))  # one of five
    assert more.rate_rps == 30.0


def test_short_peak_has_the_height_of_its_bursts() -> None:
    short = replace(series(600.0)[0], burst_rps=75.0, short=True)
    assert short.size_rps == 75.0
    assert replace(short, short=False).size_rps == 30.0


@pytest.mark.parametrize("loop", [False, True])
def test_next_peak_is_awaited_as_long_as_the_earlier_ones_were_late(loop: bool) -> None:
    """A timer of ten minutes whose peaks start up to 40 s late or early, or a loop of as much."""
    rng = np.random.default_rng(3)
    met, waited_s = 0, []
    for _ in range(100):
        late_s = rng.uniform(-40.0, 40.0, 13)
        times_s = 600.0 * np.arange(1, 14) + (np.cumsum(late_s) if loop else late_s)
        found = next_peak(series(*times_s[:12].tolist()))
        if found:
            met += found[0].is_met_by(series(float(times_s[12]))[0])
            waited_s.append(2 * found[0].tolerance_s)
    assert len(waited_s) >= 70
    assert met >= 0.9 * len(waited_s)
    assert float(np.mean(waited_s)) <= 150.0


def test_peaks_at_random_times_are_seldom_a_series() -> None:
    rng, predicted, asked = np.random.default_rng(7), 0, 0
    for _ in range(300):
        times_s = np.cumsum(120.0 + rng.exponential(480.0, 16))
        for last in range(3, 17):
            asked += 1
            predicted += bool(next_peak(series(*times_s[:last])))
    assert predicted / asked < 0.05


def seen(rate_rps: float, *, from_s: float, to_s: float, peaks: PeriodicPeaks) -> PeriodicPeaks:
    """A rate that stands out for its first ten seconds where it is above 20/s."""
    for now_s in np.arange(from_s, to_s, 2.0).tolist():
        stands_out = rate_rps > 20.0 and now_s < from_s + 10.0
        peaks = peaks.observe(now_s, rate_rps, rate_rps if stands_out else None, 30.0)
    return peaks


def test_expected_peak_counts_from_a_cold_start_before_until_overdue() -> None:
    peaks = PeriodicPeaks()
    for number in range(3):
        begin_s = 600.0 + 1200.0 * number
        peaks = seen(10.0, from_s=begin_s - 600.0, to_s=begin_s, peaks=peaks)
        peaks = seen(30.0, from_s=begin_s, to_s=begin_s + 120.0, peaks=peaks)
    peaks = seen(10.0, from_s=3120.0, to_s=3600.0, peaks=peaks)
    assert [peak.began_s for peak in peaks.peaks] == [600.0, 1800.0, 3000.0]
    # due at 4200 s, 12 s early or late
    for now_s, rate_rps in ((4007.0, 0.0), (4008.0, 30.0), (4211.0, 30.0), (4212.0, 0.0)):
        assert peaks.expected_rps(now_s, 180.0) == rate_rps, now_s


def test_peak_that_lasts_becomes_the_load() -> None:
    peaks = seen(30.0, from_s=0.0, to_s=602.0, peaks=PeriodicPeaks())
    assert not peaks.peaks[0].over
    assert seen(30.0, from_s=602.0, to_s=604.0, peaks=peaks).peaks[0].over


def test_peaks_keep_only_the_latest() -> None:
    peaks = PeriodicPeaks()
    for number in range(100):
        peaks = seen(30.0, from_s=300.0 * number, to_s=300.0 * number + 60.0, peaks=peaks)
        peaks = seen(10.0, from_s=300.0 * number + 62.0, to_s=300.0 * number + 70.0, peaks=peaks)
    assert len(peaks.peaks) == 64
    assert peaks.peaks[-1].began_s == 99 * 300.0


def on_a_timer(tuning: Tuning) -> Service:
    """Two minutes in twenty at 60/s, else 12/s; a start takes two minutes."""
    service = Service(
        rate_rps=12.0, replicas=2, load_s=120.0, policy=policy(max_replicas=20, tuning=tuning)
    )
    service.run(600)
    for _ in range(6):
        service.rate_rps = 60.0
        service.run(120)
        service.rate_rps = 12.0
        service.run(1080)
    return service


def test_periodic_peak_of_an_idle_service_is_expected() -> None:
    peaks = PeriodicPeaks(
        peaks=series(600.0, 1800.0, 3000.0), expected=next_peak(series(600.0, 1800.0, 3000.0))
    )
    found = Forecast(peaks=peaks).expected(policy(), 4100.0, 0.0, None, 180.0)
    peak = Rates(for_ceiling_rps=30.0, for_latency_rps=30.0, occasion=" at a periodic peak")
    assert (found.later, found.most) == (peak, peak)
    early = Forecast(peaks=peaks).expected(policy(), 3980.0, 0.0, None, 180.0)
    assert (early.later, early.most) == (Rates(for_ceiling_rps=0.0, for_latency_rps=0.0), peak)


def ready_when_it_began(service: Service) -> list[int]:
    times_s = [1600.0 + 1200.0 * number for number in range(6)]
    by_time = {decision.time_s: decision.counts.ready for decision in service.decisions}
    return [by_time[time_s] for time_s in times_s]


def test_replicas_from_the_fourth_periodic_peak_on_are_ready_in_time() -> None:
    alone = frozenset({Component.FLAPS})  # holds of earlier flaps would keep replicas as well
    service = on_a_timer(Tuning(without=alone))
    expecting = ready_when_it_began(service)
    assert max(expecting[:3]) <= 4
    assert min(expecting[3:]) >= 7  # 60/s are 7.3 times 0.8 of 10.3/s
    messages = [
        decision.message for decision in service.decisions if "periodic" in decision.message
    ]
    assert any("60/s expected at a periodic peak (12/s now)" in message for message in messages)
    blind = Tuning(without=alone | {Component.PERIODIC_PEAKS})
    assert max(ready_when_it_began(on_a_timer(blind))) <= 4
