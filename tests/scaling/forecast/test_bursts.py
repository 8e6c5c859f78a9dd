"""Bursts: which count, for how long, and how replicas settle under a swinging load."""

from __future__ import annotations

from itertools import pairwise

import pytest

from headroom.scaling.forecast.bursts import Burst, Bursts
from headroom.scaling.values.tuning import Component, Tuning
from scaling.forecast.rate_histories import START_S, history
from support.fakes_scaling import Service, policy


def burst(time_s: float, burst_rps: float, rate_rps: float = 100.0) -> Burst:
    return Burst(time_s=time_s, rate_rps=rate_rps, burst_rps=burst_rps)


@pytest.mark.parametrize(
    ("earlier", "left"),
    [
        ((), 1.0),
        ((100.0, 400.0), 1.0),  # two that passed: 2 of 3.5 is less than 0.6
        ((100.0, 400.0, 700.0), 0.0),  # three: 3 of 4.5
        ((100.0, 110.0, 120.0, 130.0), 1.0),  # one, seen four times
        ((1750.0, 1760.0, 1790.0), 1.0),  # their outcome is not known yet
    ],
)
def test_burst_counts_until_three_similar_ones_vanished(
    earlier: tuple[float, ...], left: float
) -> None:
    steady = history(lambda _: 100.0, 1800.0)
    bursts = Bursts(recent=tuple(burst(time_s, 200.0) for time_s in earlier))
    assert bursts.remaining_share(burst(1800.0, 200.0), steady.history, 90.0, 0.6) == left
    # 1 + 0.85 x 1.18 > 2: stronger than any
    assert bursts.remaining_share(burst(1800.0, 218.0), steady.history, 90.0, 0.6) == 1.0


def test_bursts_that_partly_remained_count_partly() -> None:
    def halves(now_s: float) -> float:
        return 150.0 if now_s % 600.0 < 300.0 else 100.0

    bursts = Bursts(recent=tuple(burst(600.0 * number, 200.0) for number in range(1, 6)))
    found = bursts.remaining_share(burst(3590.0, 200.0), history(halves, 3590.0).history, 90.0, 0.6)
    assert found == 0.5


def test_bursts_are_recorded_apart_and_for_an_hour() -> None:
    bursts = Bursts()
    for time_s in (0.0, 2.0, 4.0, 3603.0, 3605.0):
        bursts = bursts.observe(burst(time_s, 200.0), 4.0)
    assert [old.time_s for old in bursts.recent] == [4.0, 3603.0]


def test_bursts_before_a_long_gap_are_ignored() -> None:
    bursts = Bursts(recent=tuple(burst(time_s, 200.0) for time_s in (100.0, 400.0, 700.0)))
    after = history(lambda _: 100.0, 1000.0).observe(1401.0, 100.0, START_S)
    assert bursts.remaining_share(burst(1401.0, 200.0), after.history, 90.0, 0.6) == 1.0


def swinging(tuning: Tuning) -> Service:
    """One minute in five at 60/s, else 20/s, for two hours; a start takes three minutes."""
    service = Service(
        rate_rps=20.0, replicas=4, load_s=180.0, policy=policy(max_replicas=20, tuning=tuning)
    )
    for _ in range(24):
        service.rate_rps = 60.0
        service.run(60)
        service.rate_rps = 20.0
        service.run(240)
    return service


def test_replicas_under_a_fast_swinging_load_settle() -> None:
    def changes(service: Service) -> int:
        asked = [decision.replicas for decision in service.decisions[1800:]]
        return sum(after != before for before, after in pairwise(asked))

    chasing = changes(swinging(Tuning(without=frozenset({Component.FLAPS, Component.FORECAST}))))
    assert changes(swinging(Tuning(without=frozenset({Component.FLAPS})))) < chasing / 2
