"""Flaps, and the longer holds of replicas that flapped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.limits.flaps import EVERY, MOST_IN_AN_HOUR, Flaps
from headroom.scaling.values.tuning import Component, Tuning
from support.fakes_scaling import Service, policy

COLD_START_S = 40.0
"""A scale-up within 900 s after a removal is a flap: longer than 40 + 60 s."""


def after(*moves: tuple[float, int, int]) -> Flaps:
    flaps = Flaps()
    for now_s, before, replicas in moves:
        flaps = flaps.moved(now_s, before, replicas, COLD_START_S)
    return flaps


@pytest.mark.parametrize(
    ("moves", "longer"),
    [
        ([], ()),
        ([(0, 2, 4)], ()),  # nothing was removed
        ([(0, 4, 2)], ()),  # nothing was asked for again
        ([(0, 4, 2), (50, 2, 2)], ()),
        ([(0, 4, 2), (50, 2, 3)], ((4, 3),)),
        ([(0, 4, 2), (50, 2, 9)], ((4, 4),)),  # only four had been there before
        # one removal, undone in steps
        ([(0, 4, 2), (10, 2, 3), (20, 3, 4), (30, 4, 6)], ((4, 4),)),
        ([(0, 4, 2), (900, 2, 4)], ((4, 4),)),
        ([(0, 4, 2), (901, 2, 4)], ()),  # too late to be its fault
        # a chain begins at six
        ([(0, 6, 5), (50, 5, 4), (100, 4, 3), (150, 3, 8)], ((4, 6),)),
        ([(0, 6, 5), (901, 5, 4), (950, 4, 8)], ((4, 5),)),  # two removals, no chain
        ([(0, 4, 2), (50, 2, 4), (500, 4, 3), (550, 3, 4)], ((4, 4), (16, 4))),
        # the upper five took part in one of the two
        ([(0, 9, 2), (50, 2, 9), (500, 4, 3), (550, 3, 4)], ((4, 9), (16, 4))),
        ([(0, 4, 2), (50, 2, 4), (500, 9, 3), (550, 3, 9)], ((4, 9), (16, 4))),
    ],
)
def test_flap_extends_the_hold_of_the_replicas_that_took_part(
    moves: list[tuple[float, int, int]], longer: tuple[tuple[int, int], ...]
) -> None:
    holds = after(*moves).holds(1000.0, 60.0)
    assert holds == tuple((60.0 * factor, level) for factor, level in longer)


def test_flap_older_than_an_hour_is_forgotten() -> None:
    flaps = after((0, 9, 2), (50, 2, 9), (500, 4, 2), (550, 2, 4))
    assert flaps.holds(3649.0, 60.0) == ((240.0, 9), (960.0, 4))
    assert flaps.holds(3650.0, 60.0) == ((240.0, 4),)
    assert flaps.holds(4150.0, 60.0) == ()


def test_hold_grows_four_times_per_flap_and_covers_every_replica_after_four() -> None:
    flaps = Flaps()
    for number in range(1, 10):
        flaps = flaps.moved(200.0 * number, 4, 2, COLD_START_S)
        flaps = flaps.moved(200.0 * number + 9.0, 2, 4, COLD_START_S)
        longest_s = min(3600.0, 60.0 * 4**number)
        level = 4 if number < MOST_IN_AN_HOUR else EVERY
        assert flaps.holds(2000.0, 60.0)[-1] == (longest_s, level)


def test_waves_that_rise_higher_each_time_use_the_budget() -> None:
    flaps = Flaps()
    for number in range(MOST_IN_AN_HOUR):
        began_s, level = 200.0 * number, 4 + number
        flaps = flaps.moved(began_s, level, level - 2, COLD_START_S)
        flaps = flaps.moved(began_s + 9.0, level - 2, level + 1, COLD_START_S)
    assert flaps.holds(800.0, 60.0)[-1] == (3600.0, EVERY)
    # Without the first flap there are three again.
    assert flaps.holds(3609.0, 60.0) == ((240.0, 7), (960.0, 6), (3600.0, 5))


def test_hold_longer_than_an_hour_is_unchanged() -> None:
    assert after((0, 4, 2), (50, 2, 4)).holds(60.0, 4000.0) == ((4000.0, 4),)


@given(
    st.lists(st.tuples(st.floats(0.0, 2000.0), st.integers(0, 30), st.integers(0, 30)), max_size=30)
)
def test_longer_holds_apply_to_fewer_replicas(
    steps: list[tuple[float, int, int]],
) -> None:
    flaps, now_s = Flaps(), 0.0
    for wait_s, before, replicas in steps:
        now_s += wait_s
        flaps = flaps.moved(now_s, before, replicas, COLD_START_S)
        holds = flaps.holds(now_s, 60.0)
        levels = [level for _, level in holds]
        assert [hold_s for hold_s, _ in holds[:3]] == [240.0, 960.0, 3600.0][: len(holds)]
        counted = [level for level in levels if level != EVERY]
        assert (EVERY in levels) == (len(counted) >= MOST_IN_AN_HOUR)
        assert counted == sorted(counted, reverse=True)
        assert max(counted, default=0) <= max(before for _, before, _ in steps)
    assert flaps.holds(now_s + 3601.0, 60.0) == ()


def _flapping(tuning: Tuning) -> Service:
    """Two replicas, one, and two again within a minute: 12/s over 8.7/s are two.

    What comes 15 minutes after the removal is no flap any more.
    """
    service = Service(rate_rps=12.0, replicas=2, policy=policy(tuning=tuning))
    service.run(120)
    _seconds_until(service, 1, rate_rps=3.0)
    service.rate_rps = 12.0
    service.run(80)
    assert service.replicas == 2
    return service


def _seconds_until(service: Service, replicas: int, *, rate_rps: float) -> float:
    """Seconds at this rate until no more than this many replicas are left."""
    service.rate_rps, begun_s = rate_rps, service.now_s
    while service.replicas > replicas:
        assert service.now_s - begun_s < 2000
        service.tick()
    return service.now_s - begun_s


WITHOUT = Tuning(without=frozenset({Component.FLAPS}))


def test_flapped_replica_is_kept_four_times_as_long() -> None:
    usual_s = _seconds_until(_flapping(WITHOUT), 1, rate_rps=3.0)
    service = _flapping(Tuning())
    assert [level for _, level in service.state.flaps.recent] == [2]
    # The hold is 60 s: one flap makes it 240 s, a second one 960 s.
    assert _seconds_until(service, 1, rate_rps=3.0) == usual_s + 180.0
    service.rate_rps = 12.0
    service.run(80)
    assert _seconds_until(service, 1, rate_rps=3.0) == usual_s + 900.0


def test_replicas_above_the_flap_level_go_after_the_usual_hold() -> None:
    service = _flapping(Tuning())
    service.rate_rps = 100.0
    service.run(30)
    assert service.replicas >= 12
    assert service.state.flaps.holds(service.now_s, 60.0) == ((240.0, 2),)
    service.rate_rps, begun_s = 3.0, service.now_s
    while service.state.needed_high.entries[-1][1] > 2:  # the surge leaves the windows
        service.tick()
    falling_s = service.now_s - begun_s
    assert _seconds_until(service, 2, rate_rps=3.0) <= 60.0 + 2 * service.tick_s
    assert falling_s < 60.0
    assert service.replicas == 2
    assert _seconds_until(service, 1, rate_rps=3.0) == pytest.approx(180.0, abs=4.0)


def test_surge_long_after_a_removal_is_no_flap() -> None:
    service = Service(rate_rps=12.0, replicas=2)
    service.run(120)
    _seconds_until(service, 1, rate_rps=3.0)
    service.run(910)
    service.rate_rps = 12.0
    service.run(80)
    assert service.replicas == 2
    assert service.state.flaps.recent == ()


@pytest.mark.parametrize(
    ("levels", "kept"),
    [((7, 6, 8), 0), ((7, 6, 8, 6), 6), ((7, 6, 8, 6, 7), 6), ((7, 9, 8, 9, 7, 9), 8)],
)
def test_replicas_that_flapped_four_times_in_an_hour_are_kept(
    levels: tuple[int, ...], kept: int
) -> None:
    turns = list(enumerate(levels))
    moves = [(100 * at, high, 3) for at, high in turns]
    moves += [(100 * at + 50, 3, high) for at, high in turns]
    flaps = after(*sorted(moves))
    assert flaps.kept(1000.0) == kept
    assert flaps.kept(5000.0) == 0
