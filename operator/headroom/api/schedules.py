"""Schedules: a higher minimum of replicas from each start to the next end.

Times are cron expressions in a time zone, as in a CronJob and in KEDA's cron trigger; cronsim reads
them, and treats hours that daylight saving time skips or repeats as Debian's cron does.
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
    """Minimum number of replicas from each start to the next end."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """Name that decisions mention while the schedule applies."""
    time_zone: Annotated[
        str, Field(max_length=64, pattern=r"^[A-Za-z][-+_/A-Za-z0-9]*$"), AfterValidator(_read_zone)
    ] = "UTC"
    """Time zone of start and end, such as Europe/Berlin."""
    start: Cron
    """Start as cron expression: minute, hour, day of month, month, day of week. Replicas are
    started one cold start earlier, so that they are warm by then."""
    end: Cron
    """End, in the same form."""
    min_replicas: Annotated[int, Field(ge=1, le=1000)]
    """Minimum number of replicas from start to end; at most scaling.maxReplicas."""

    rules = (
        Rule(
            field="end",
            cel="self.start != self.end",
            holds=lambda schedule: schedule.start != schedule.end,
            message="end must differ from start",
        ),
    )


class Floor(NamedTuple):
    """Minimum number of replicas at a time, and the schedule that sets it; empty for none."""

    replicas: int
    schedule: str = ""


def floor_at(schedules: Sequence[Schedule], least: int, now_s: float, lead_s: float = 0.0) -> Floor:
    """Return the highest minimum of `least` and the schedules active now or within `lead_s`."""
    acting = [
        Floor(one.min_replicas, one.name)
        for one in schedules
        if _acts(one, int(now_s // MINUTE_S)) or _acts(one, int((now_s + lead_s) // MINUTE_S))
    ]
    return max((Floor(least), *acting), key=lambda floor: floor.replicas)


@lru_cache(maxsize=4096)
def _acts(schedule: Schedule, minute: int) -> bool:
    """Return whether the last start is after the last end; takes 0.2 ms, so cached per minute."""
    at = datetime.fromtimestamp(minute * MINUTE_S, ZoneInfo(schedule.time_zone))
    started = _last(schedule.start, at)
    if started is None:
        return False
    ended = _last(schedule.end, at)
    return ended is None or started > ended


def _last(cron: str, at: datetime) -> tuple[float, datetime] | None:
    """Return when `cron` last fired at or before `at`, in UTC seconds, and the clock time it names.

    None if there is none within fifty years. In an hour that is repeated, a fixed time fired in the
    first pass, even where it is later on the clock, so the search begins behind that hour. Fixed
    times in an hour that is skipped fire at its end, in the order of the clock: an end 15 2 and a
    start 45 2 both at 03:00.
    """
    now_s = at.timestamp()
    repeated_s = now_s - at.replace(fold=0).timestamp()
    search = CronSim(cron, datetime.fromtimestamp(now_s + repeated_s + 1, at.tzinfo), reverse=True)
    fired = next((one for one in search if one.timestamp() <= now_s), None)
    if fired is None:
        return None
    named = CronSim(cron, fired.replace(tzinfo=None) + timedelta(seconds=1), reverse=True)
    return fired.timestamp(), next(named)
