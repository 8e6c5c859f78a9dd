"""Floors of schedules that a service keeps: the same answers as a search for each minute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from time import process_time
from zoneinfo import ZoneInfo

import pytest

from headroom.api.service_spec.schedules import Schedule, floor_at
from headroom.controller.decide.floors import Floors

PAIRS = [
    ("0 8 * * 1-5", "0 18 * * 1-5"),
    ("*/7 * * * *", "3-59/5 * * * *"),
    ("30 2 * * *", "45 2 * * *"),
    ("0 * * * *", "30 * * * *"),
    ("45 2 * * *", "15 2 * * *"),
    ("0 0 29 2 *", "0 0 1 3 *"),
    ("0 0 * * 1#5", "0 0 L * *"),
]


def schedules(zone: str) -> list[Schedule]:
    return [
        Schedule(name=f"s{n}", time_zone=zone, start=start, end=end, min_replicas=2 + n)
        for n, (start, end) in enumerate(PAIRS)
    ]


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    begun_s = process_time()
    yield
    assert process_time() - begun_s < seconds


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("Europe/Berlin", "2026-03-29"),  # an hour is skipped
        ("Europe/Berlin", "2026-10-25"),  # an hour is repeated
        ("Australia/Lord_Howe", "2026-04-05"),  # half an hour is repeated
        ("Asia/Kathmandu", "2026-06-29"),  # 5:45 ahead of UTC
    ],
)
def test_floors_are_those_of_each_minute(zone: str, day: str) -> None:
    begin_s = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).timestamp()
    for one in schedules(zone):
        floors = Floors()
        for minute in range(40, 200):
            now_s = begin_s + 60.0 * minute
            expected = floor_at([one], 1, now_s, 90.0)
            assert floors.at([one], 1, now_s, 90.0) == expected, (one, minute)


def test_clock_that_is_set_back_gets_the_floor_of_that_time() -> None:
    floors, now_s = Floors(), 1_800_000_000.0
    for back_s in (0.0, 3600.0, 30 * 86_400.0, 60.0):
        expected = floor_at(schedules("UTC"), 1, now_s - back_s, 0.0)
        assert floors.at(schedules("UTC"), 1, now_s - back_s, 0.0) == expected


def test_services_with_many_schedules_do_not_make_each_tick_search() -> None:
    """300 services of 16 schedules: each search takes 0.3 ms, all of them 3 s at each tick."""
    many = [
        [
            Schedule(name=f"{n}-{k}", start=f"{k} 8 * * *", end=f"{k} 18 * * *", min_replicas=2)
            for k in range(16)
        ]
        for n in range(300)
    ]
    all_floors = [Floors() for _ in many]

    def tick(now_s: float) -> None:
        for floors, own in zip(all_floors, many, strict=True):
            floors.at(own, 1, now_s, 600.0)

    tick(1_800_000_000.0 + 60.0 * 20)
    with at_most(0.5):
        tick(1_800_000_002.0 + 60.0 * 20)
