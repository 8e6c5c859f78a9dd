"""Schedules, worked by hand, including daylight saving time."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from headroom.api.schema.structural_schema import structural_schema
from headroom.api.service_spec.scaling import Scaling
from headroom.api.service_spec.schedules import Floor, Schedule, floor_at
from headroom.api.values import VALIDATIONS

OFFICE = {
    "name": "office",
    "timeZone": "Europe/Berlin",
    "start": "0 8 * * 1-5",
    "end": "0 18 * * 1-5",
    "minReplicas": 6,
}


def schedule(**changed: Any) -> Schedule:
    return Schedule.model_validate(OFFICE | changed)


def berlin(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo("Europe/Berlin")).timestamp()


@pytest.mark.parametrize(
    ("at", "replicas"),
    [
        ("2026-03-27 07:59:59", 1),  # a Friday
        ("2026-03-27 08:00:00", 6),
        ("2026-03-27 17:59:59", 6),
        ("2026-03-27 18:00:00", 1),
        ("2026-03-28 12:00:00", 1),  # Saturday: the last end lies after the last start
        ("2026-03-30 07:59:00", 1),  # Monday, an hour of UTC earlier: clocks went forward
        ("2026-03-30 08:00:00", 6),
    ],
)
def test_schedule_applies_from_start_to_end(at: str, replicas: int) -> None:
    assert floor_at([schedule()], 1, berlin(at)).replicas == replicas


def test_schedule_over_midnight_applies() -> None:
    night = schedule(start="0 22 * * *", end="0 6 * * *", timeZone="UTC")
    hours = [23, 24, 29.99, 30, 21.99]
    assert [floor_at([night], 1, 86_400 * 20_000 + 3600 * h).replicas for h in hours] == [
        6,
        6,
        6,
        1,
        1,
    ]


def test_schedule_starts_one_cold_start_early() -> None:
    before = berlin("2026-03-27 07:58:00")
    assert floor_at([schedule()], 1, before, lead_s=119.0).replicas == 1
    assert floor_at([schedule()], 1, before, lead_s=120.0) == Floor(6, "office")


def test_schedule_end_is_not_moved_by_the_lead() -> None:
    assert floor_at([schedule()], 1, berlin("2026-03-27 17:59:00"), lead_s=600.0).replicas == 6


def test_floor_of_several_schedules_is_the_highest() -> None:
    lunch = schedule(name="lunch", start="0 12 * * *", end="0 13 * * *", minReplicas=9)
    low = schedule(name="low", minReplicas=2)
    noon, morning = berlin("2026-03-27 12:30:00"), berlin("2026-03-27 09:00:00")
    assert floor_at([low, lunch, schedule()], 1, noon) == Floor(9, "lunch")
    assert floor_at([low, lunch, schedule()], 1, morning) == Floor(6, "office")
    assert floor_at([low], 3, morning) == Floor(3)


def edges(start: str, end: str, noon: str) -> list[str]:
    """Return when the schedule goes on (+) and off (-) from noon, in UTC; every 5 minutes."""
    one, noon_s = schedule(start=start, end=end), berlin(f"{noon} 12:00")
    minutes = range(int(noon_s // 60), int(noon_s // 60) + 25 * 60, 5)
    acts = [(minute, floor_at([one], 1, 60.0 * minute).replicas == 6) for minute in minutes]
    return [
        f"{'+' if now else '-'}{datetime.fromtimestamp(60 * minute, UTC):%H:%M}"
        for (_, before), (minute, now) in pairwise(acts)
        if now != before
    ]


@pytest.mark.parametrize(
    ("start", "end", "repeated", "skipped"),
    [
        # clocks repeat 02:00-02:59 at 01:00 UTC on 25 October, skip it at 01:00 UTC on 29 March
        ("30 2 * * *", "0 8 * * *", ["+00:30", "-07:00"], ["+01:00", "-06:00"]),
        ("0 22 * * *", "30 2 * * *", ["+20:00", "-00:30"], ["+21:00", "-01:00"]),
        ("30 1 * * *", "30 2 * * *", ["+23:30", "-00:30"], ["+00:30", "-01:00"]),
        ("0 2 * * *", "55 2 * * *", ["+00:00", "-00:55"], []),
        ("45 2 * * *", "15 2 * * *", ["-00:15", "+00:45"], []),
        ("0 1 * * *", "0 3 * * *", ["+23:00", "-02:00"], ["+00:00", "-01:00"]),
        ("30 2 25,29 * *", "0 3 25,29 * *", ["+00:30", "-02:00"], []),
    ],
)
def test_fixed_times_fire_once_where_the_clocks_change(
    start: str, end: str, repeated: list[str], skipped: list[str]
) -> None:
    assert edges(start, end, "2026-10-24") == repeated
    assert edges(start, end, "2026-03-28") == skipped


def test_fixed_times_in_a_skipped_hour_keep_their_order() -> None:
    """Both fire at 03:00; the start is later on the clock, so the day goes on with it."""
    one = schedule(start="45 2 * * *", end="15 2 * * *")
    assert floor_at([one], 1, berlin("2026-03-29 12:00")).replicas == 6


def test_times_of_every_hour_fire_in_both_passes_of_a_repeated_hour() -> None:
    night = [edge for edge in edges("0 * * * *", "30 * * * *", "2026-10-24") if edge[1] == "0"]
    hours = [f"0{hour}" for hour in range(10)]
    assert night == [edge for hour in hours for edge in (f"+{hour}:00", f"-{hour}:30")]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"start": "0 25 * * *"}, "must be a cron expression of five fields"),
        ({"start": "@daily"}, "must be a cron expression of five fields, such as `0 8"),
        ({"end": "0 18 * *"}, "must be a cron expression of five fields, such as `0 8"),
        ({"timeZone": "Europe/Berlin "}, "must be a time zone such as Europe/Berlin"),
        ({"start": "0 0 */31 * 1#5"}, "must fire at some time"),  # day 1 is no fifth Monday
        ({"end": "0 0 */28 2 1#4"}, "must fire at some time"),
        ({"timeZone": "Mars/Olympus"}, "must be a time zone such as Europe/Berlin"),
        ({"timeZone": "Europe"}, "must be a time zone such as Europe/Berlin"),
        ({"end": "0 8 * * 1-5"}, "end must differ from start"),
        ({"minReplicas": 0}, "greater than or equal to 1"),
    ],
)
def test_invalid_schedule_is_rejected(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        schedule(**changed)


def test_schema_states_the_rule_of_a_schedule_as_text() -> None:
    """The API server shows a pattern of a schema as it is."""
    fields = structural_schema(Schedule)["properties"]
    for name, words in (("start", "cron"), ("end", "cron"), ("timeZone", "time zone")):
        (rule,) = fields[name][VALIDATIONS]
        assert rule["message"].startswith(f"must be a {words}")
        assert "pattern" not in fields[name]


def test_schedule_above_max_replicas_is_rejected() -> None:
    with pytest.raises(ValidationError, match=r"must be at most scaling\.maxReplicas"):
        Scaling.model_validate({"maxReplicas": 5, "schedules": [OFFICE]})
    with pytest.raises(ValidationError, match="entries must differ in name"):
        Scaling.model_validate({"schedules": [OFFICE, OFFICE]})
