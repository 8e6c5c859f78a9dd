"""Checkpoint of the last hour: holds after flaps, rates, periodic peaks."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headroom.scaling import State
from headroom.scaling.forecast.forecast import Forecast
from headroom.scaling.forecast.peak import Peak
from headroom.scaling.forecast.peak_series import next_peak
from headroom.scaling.forecast.periodic_peaks import PeriodicPeaks
from headroom.scaling.limits.flaps import Flaps
from headroom.scaling.limits.stabilization import SlidingExtreme
from headroom.scaling.state.last_hour import MOST_FLAPS, MOST_LEVELS, LastHour
from scaling.windows.contradicted_fleet import Fleet
from support.fakes_scaling import Service, policy

NOW_S = 10_000.0


def largest(*entries: tuple[float, int]) -> SlidingExtreme:
    return SlidingExtreme(keep="largest", entries=entries)


def restored(hour: LastHour, now_s: float = NOW_S) -> LastHour:
    saved_s, found = LastHour.from_checkpoint(json.loads(json.dumps(hour.to_checkpoint(now_s))))
    assert saved_s == now_s
    return found


def test_flaps_and_the_replicas_that_they_hold_survive() -> None:
    hour = LastHour(
        flaps=Flaps(lowered_s=9_900.0, lowered_from=7, recent=((9_000.0, 7), (9_950.0, 5))),
        arrivals_high=largest((8_000.0, 9), (9_990.0, 4)),
    )
    found = restored(hour)
    assert (found.flaps, found.arrivals_high) == (hour.flaps, hour.arrivals_high)
    assert found.until(NOW_S + 1.0).flaps == hour.flaps


def test_many_levels_are_merged_so_that_nothing_is_removed_sooner() -> None:
    entries = tuple((6_500.0 + 10.0 * number, 100 - number) for number in range(90))
    found = restored(LastHour(arrivals_high=largest(*entries))).arrivals_high
    assert len(found.entries) <= MOST_LEVELS
    for time_s, replicas in entries:
        assert (found.since(time_s) or 0) >= replicas


def test_expected_peaks_survive() -> None:
    peaks = tuple(
        Peak(began_s=7_000.0 + 600.0 * number, before_rps=5.0, peak_rps=20.0, over=True)
        for number in range(5)
    )
    expected = next_peak(peaks)
    assert expected
    hour = LastHour(forecast=Forecast(peaks=PeriodicPeaks(peaks=peaks, expected=expected)))
    assert restored(hour).forecast.peaks == hour.forecast.peaks


def test_entries_of_a_later_time_are_dropped() -> None:
    hour = LastHour(
        flaps=Flaps(lowered_s=9_900.0, lowered_from=7, recent=((9_000.0, 7), (9_950.0, 5))),
        arrivals_high=largest((8_000.0, 9), (9_990.0, 4)),
    )
    found = hour.until(9_500.0)
    assert found.flaps == Flaps(recent=())
    assert found.arrivals_high.entries == ((8_000.0, 9),)
    assert hour.until(20_000.0).arrivals_high.entries == ()


def test_checkpoint_without_an_hour_has_none() -> None:
    saved_s, found = LastHour.from_checkpoint({})
    assert saved_s is None
    assert (found.flaps, found.arrivals_high.entries) == (Flaps(), ())
    assert len(found.forecast.analogs.history) == 0
    assert "flaps" not in State.initial().to_checkpoint()


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("flaps", [1.0], "at most 16 times 2 numbers"),
        ("flaps", [1.0, 2.0] * (MOST_FLAPS + 1), "at most 16 times 2 numbers"),
        ("flaps", [1.0, 2.5], "whole replicas"),
        ("flaps", [-1.0, 2.0], "numbers from 0"),
        ("lowered", [1.0, 1e12], "whole replicas"),
        ("needed", [50.0, 3.0, 40.0, 3.0], "falling numbers"),
        ("needed", [40.0, 4.0, 50.0, 3.0], "falling numbers"),
        ("rates", [1.0] * 200, "at most 122 times 1 numbers"),
        ("rates", "many", "a list of numbers"),
        ("peaks", [1.0, 2.0], "at most 12 times 5 numbers"),
        ("decided", [1.0, 2.0], "at most 1 times 1 numbers"),
    ],
)
def test_invalid_numbers_are_rejected(key: str, value: object, rule: str) -> None:
    checkpoint = {**LastHour().to_checkpoint(NOW_S), key: value}
    with pytest.raises(ValueError, match=f"checkpoint {key} must .*{rule}"):
        LastHour.from_checkpoint(checkpoint)


def surges(service: Service, number: int) -> None:
    """Two minutes of a surge, eight of little load, again and again."""
    for _ in range(number):
        service.rate_rps = 60.0
        service.run(120)
        service.rate_rps = 5.0
        service.run(480)


@pytest.mark.parametrize("down_s", [0.0, 60.0])
def test_restarted_operator_keeps_what_flaps_have_taught_to_keep(down_s: float) -> None:
    service = Service(rate_rps=5.0, replicas=2, policy=policy(max_replicas=20))
    surges(service, 5)
    held, without = service.replicas, service.state
    assert held > 4
    service.state = State.from_checkpoint(json.loads(json.dumps(service.state.to_checkpoint())))
    service.now_s += down_s
    service.run(400)
    assert service.replicas == held
    service.state = replace(
        State.from_checkpoint(without.to_checkpoint()), flaps=Flaps(), forecast=Forecast()
    )
    service.run(400)
    assert service.replicas < held


def test_checkpoint_of_a_busy_hour_is_small() -> None:
    service = Service(rate_rps=5.0, replicas=2, policy=policy(max_replicas=20))
    surges(service, 6)
    assert len(json.dumps(service.state.to_checkpoint(), separators=(",", ":"))) < 2048


def test_checkpoint_after_absurd_arrivals_can_be_read() -> None:
    """All replicas of a service count 10^12 requests per second: its operator must restart."""
    fleet = Fleet(1e12)
    assert fleet.run(40)[-1].replicas == fleet.policy.max_replicas
    assert State.from_checkpoint(fleet.state.to_checkpoint()).arrivals_high.entries
