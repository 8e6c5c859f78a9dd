"""Schedules: a higher minimum of replicas from each start to the next end.

Times are cron expressions in a time zone, as in a CronJob and in KEDA's cron trigger; cronsim reads
them, and treats hours that daylight saving time skips or repeats as Debian's cron does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from headroom.api.service_spec.cron_times import (
    A_CRON,
    MINUTE_S,
    last_fired,
    quiet_until,
    read_cron,
)
from headroom.api.text_forms import TextForm
from headroom.api.values import Rule, Value


def _read_zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (OSError, ValueError):  # not found is a KeyError of its own, and an OSError for folders
        raise _unknown_zone() from None
    except KeyError:
        raise _unknown_zone() from None
    return text


def _unknown_zone() -> PydanticCustomError:
    return PydanticCustomError("zone", _A_ZONE)


_A_ZONE = "must be a time zone such as Europe/Berlin, or UTC"
Cron = Annotated[
    str,
    Field(max_length=64),
    TextForm("^[-0-9A-Za-z*,/#]+( +[-0-9A-Za-z*,/#]+){4}$", A_CRON),
    AfterValidator(read_cron),
]


class Schedule(Value):
    """Minimum number of replicas from each start to the next end."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """Name that decisions mention while the schedule applies."""
    time_zone: Annotated[
        str,
        Field(max_length=64),
        TextForm("^[A-Za-z][-+_/A-Za-z0-9]*$", _A_ZONE),
        AfterValidator(_read_zone),
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


class Span(NamedTuple):
    """Minutes in which a schedule acts, or does not, throughout: from `begins` to before `ends`."""

    begins: int
    ends: int
    acts: bool


def span_at(schedule: Schedule, minute: int) -> Span:
    """Return whether the last start is after the last end, and until when; takes 0.3 ms."""
    started = last_fired(schedule.start, schedule.time_zone, minute)
    ended = last_fired(schedule.end, schedule.time_zone, minute)
    acts = started is not None and (ended is None or started > ended)
    ends = quiet_until((schedule.start, schedule.end), schedule.time_zone, minute)
    return Span(minute, ends, acts)


def floor_at(
    schedules: Sequence[Schedule],
    least: int,
    now_s: float,
    lead_s: float = 0.0,
    span: Callable[[Schedule, int], Span] = span_at,
) -> Floor:
    """Return the highest minimum of `least` and the schedules active now or within `lead_s`.

    `span` is `span_at`, or remembers its answers.
    """
    minutes = int(now_s // MINUTE_S), int((now_s + lead_s) // MINUTE_S)
    acting = [
        Floor(one.min_replicas, one.name)
        for one in schedules
        if any(span(one, minute).acts for minute in minutes)
    ]
    return max((Floor(least), *acting), key=lambda floor: floor.replicas)
