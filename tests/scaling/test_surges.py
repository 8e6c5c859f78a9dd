"""Surges that come at regular times are expected; those that do not are not."""

from __future__ import annotations

import numpy as np
import pytest

from headroom.scaling.forecast.forecast import Forecast, Rates
from headroom.scaling.forecast.periodic_peaks import Due, Surge, Surges, next_of
from headroom.scaling.tuning import Element, Law
from scaling_world import Service, policy


def row(*began_s: float, peak_rps: float = 30.0) -> tuple[Surge, ...]:
    return tuple(
        Surge(began_s=at_s, before_rps=10.0, peak_rps=peak_rps, over=True) for at_s in began_s
    )


@pytest.mark.parametrize(
    ("began_s", "due_s"),
    [
        ((600.0, 1800.0), None),  # one distance says nothing
        ((600.0, 1800.0, 3000.0), 4200.0),
        ((600.0, 1800.0, 3011.0), 4222.0),  # 11 s of 1211 s: within 1 %
        ((600.0, 1800.0, 3030.0), None),
        ((600.0, 1800.0, 3000.0, 3700.0), None),  # the latest belongs to no row
        ((600.0, 1800.0, 3000.0, 3700.0, 4200.0), 5400.0),  # one between that belongs to none
        ((0.0, 300.0, 600.0, 900.0), 1200.0),  # and not twice 300 s
    ],
)
def test_three_at_equal_distances_are_a_row(
    began_s: tuple[float, ...], due_s: float | None
) -> None:
    assert [due.at_s for due in next_of(row(*began_s))] == ([] if due_s is None else [due_s])


def test_what_comes_next_is_as_high_as_they_usually_were() -> None:
    seen = (*row(600.0, peak_rps=90.0), *row(1800.0, 3000.0))
    assert next_of(seen) == (Due(at_s=4200.0, tolerance_s=12.0, rate_rps=30.0),)


def test_surges_at_random_times_are_seldom_taken_for_a_row() -> None:
    rng, believed, asked = np.random.default_rng(7), 0, 0
    for _ in range(300):
        times_s = np.cumsum(120.0 + rng.exponential(480.0, 16))
        for last in range(3, 17):
            asked += 1
            believed += bool(next_of(row(*times_s[:last])))
    assert believed / asked < 0.05


def seen(rate_rps: float, *, from_s: float, to_s: float, surges: Surges) -> Surges:
    """A rate that stands out for its first ten seconds where it is above 20/s."""
    for now_s in np.arange(from_s, to_s, 2.0).tolist():
        stands_out = rate_rps > 20.0 and now_s < from_s + 10.0
        surges = surges.noted(now_s, rate_rps, stands_out, 30.0)
    return surges


def test_what_is_due_is_expected_from_a_start_before_it_until_it_is_overdue() -> None:
    surges = Surges()
    for number in range(3):
        begin_s = 600.0 + 1200.0 * number
        surges = seen(10.0, from_s=begin_s - 600.0, to_s=begin_s, surges=surges)
        surges = seen(30.0, from_s=begin_s, to_s=begin_s + 120.0, surges=surges)
    surges = seen(10.0, from_s=3120.0, to_s=3600.0, surges=surges)
    assert [surge.began_s for surge in surges.seen] == [600.0, 1800.0, 3000.0]
    # due at 4200 s, 12 s early or late
    for now_s, rate_rps in ((4007.0, 0.0), (4008.0, 30.0), (4211.0, 30.0), (4212.0, 0.0)):
        assert surges.expected_rps(now_s, 180.0) == rate_rps, now_s


def test_what_lasts_is_the_load() -> None:
    surges = seen(30.0, from_s=0.0, to_s=602.0, surges=Surges())
    assert not surges.seen[0].over
    assert seen(30.0, from_s=602.0, to_s=604.0, surges=surges).seen[0].over


def test_only_the_latest_are_remembered() -> None:
    surges = Surges()
    for number in range(100):
        surges = seen(30.0, from_s=300.0 * number, to_s=300.0 * number + 60.0, surges=surges)
        surges = seen(10.0, from_s=300.0 * number + 62.0, to_s=300.0 * number + 70.0, surges=surges)
    assert len(surges.seen) == 64
    assert surges.seen[-1].began_s == 99 * 300.0


def on_a_timer(law: Law) -> Service:
    """Two minutes in twenty at 60/s, else 12/s; a start takes two minutes."""
    service = Service(
        rate_rps=12.0, replicas=2, load_s=120.0, policy=policy(max_replicas=20, law=law)
    )
    service.run(600)
    for _ in range(6):
        service.rate_rps = 60.0
        service.run(120)
        service.rate_rps = 12.0
        service.run(1080)
    return service


def test_a_timer_is_expected_by_a_service_that_idles_between() -> None:
    surges = Surges(seen=row(600.0, 1800.0, 3000.0), due=next_of(row(600.0, 1800.0, 3000.0)))
    found = Forecast(surges=surges).expected(policy(), 4100.0, 0.0, None, 180.0)
    surge = Rates(steady=30.0, felt=30.0, due=True)
    assert (found.later, found.most) == (surge, surge)
    early = Forecast(surges=surges).expected(policy(), 3980.0, 0.0, None, 180.0)
    assert (early.later, early.most) == (Rates(steady=0.0, felt=0.0), surge)


def ready_when_it_began(service: Service) -> list[int]:
    times_s = [1600.0 + 1200.0 * number for number in range(6)]
    by_time = {decision.time_s: decision.counts.ready for decision in service.decisions}
    return [by_time[time_s] for time_s in times_s]


def test_from_the_fourth_on_replicas_are_ready_when_a_timer_strikes() -> None:
    service = on_a_timer(Law())
    expecting = ready_when_it_began(service)
    assert max(expecting[:3]) <= 4
    assert min(expecting[3:]) >= 7  # 60/s are 7.3 times 0.8 of 10.3/s
    said = [decision.message for decision in service.decisions if "is due" in decision.message]
    assert any("60/s expected of a surge that is due (12/s now)" in message for message in said)
    blind = ready_when_it_began(on_a_timer(Law(without=frozenset({Element.SURGES}))))
    assert max(blind) <= 4
