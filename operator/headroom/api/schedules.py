"""Floors by the wall clock: so many replicas from each start to the next end.

Times are cron expressions in a time zone, as in a CronJob and in KEDA's cron trigger; cronsim reads
them, and handles the hours that summer time skips and repeats as Debian's cron does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from headroom.api.values import Rule, Value

MINUTE_S = 60


def _read_cron(text: str) -> str:
    try:
        CronSim(text, datetime(2000, 1, 1, tzinfo=ZoneInfo("UTC")))
    except CronSimError as error:
        rule = f"must be a cron expression of five fields, such as 0 8 * * 1-5 ({error})"
        raise PydanticCustomError("cron", "{rule}", {"rule": rule}) from None
    return text


def _read_zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (OSError, ValueError):  # not found is a KeyError of its own, and an OSError for folders
        raise _unknown_zone() from None
    except KeyError:
        raise _unknown_zone() from None
    return text


def _unknown_zone() -> PydanticCustomError:
    return PydanticCustomError("zone", "must be a time zone such as Europe/Berlin, or UTC")


Cron = Annotated[
    str,
    Field(max_length=64, pattern=r"^[-0-9A-Za-z*,/#]+( +[-0-9A-Za-z*,/#]+){4}$"),
    AfterValidator(_read_cron),
]


class Schedule(Value):
    """A floor from each start to the next end."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """Told in decisions while it binds."""
    time_zone: Annotated[
        str, Field(max_length=64, pattern=r"^[A-Za-z][-+_/A-Za-z0-9]*$"), AfterValidator(_read_zone)
    ] = "UTC"
    """In which start and end are meant, such as Europe/Berlin."""
    start: Cron
    """When the floor begins, as minute, hour, day of month, month and day of week. Replicas are
    asked for one cold start earlier, so that they are warm by then."""
    end: Cron
    """When it ends, in the same form."""
    min_replicas: Annotated[int, Field(ge=1, le=1000)]
    """Never fewer in between, within scaling.maxReplicas."""

    rules = (
        Rule(
            field="end",
            cel="self.start != self.end",
            holds=lambda schedule: schedule.start != schedule.end,
            message="start and end must differ",
        ),
    )


class Floor(NamedTuple):
    """The fewest replicas at a time, and the schedule that says so; empty where none does."""

    replicas: int
    schedule: str = ""


def floor_at(schedules: Sequence[Schedule], least: int, now_s: float, lead_s: float = 0.0) -> Floor:
    """Return the highest floor of `least` and the schedules that act now or within `lead_s`."""
    acting = [
        Floor(one.min_replicas, one.name)
        for one in schedules
        if _acts(one, int(now_s // MINUTE_S)) or _acts(one, int((now_s + lead_s) // MINUTE_S))
    ]
    return max((Floor(least), *acting), key=lambda floor: floor.replicas)


@lru_cache(maxsize=4096)
def _acts(schedule: Schedule, minute: int) -> bool:
    """Whether the last start lies after the last end; 0.1 ms, so it is kept for its minute."""
    at = datetime.fromtimestamp(minute * MINUTE_S, ZoneInfo(schedule.time_zone))
    started = _last(schedule.start, at)
    if started is None:
        return False
    ended = _last(schedule.end, at)
    return ended is None or started > ended


def _last(cron: str, at: datetime) -> datetime | None:
    """Return the last time at or before `at`; None where there was none in fifty years."""
    return next(CronSim(cron, at + timedelta(seconds=1), reverse=True), None)
