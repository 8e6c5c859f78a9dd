"""Cron expressions: which are valid, when they fired last, and until when they cannot fire. Pure.

cronsim searches day by day, for fifty years: 10 ms for an expression that never fires. A tenant
chooses how often that is done by its schedules, so such expressions are rejected.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic_core import PydanticCustomError

MINUTE_S = 60
A_CRON = "must be a cron expression of five fields, such as `0 8 * * 1-5`"
_GRID = 15
"""Clocks are changed at multiples of it only, in minutes of UTC: in between, minutes just pass."""


def _kinds_of_months() -> dict[int, list[date]]:
    """Return by length all days of seven months, one beginning on each day of the week."""
    kinds: dict[tuple[int, int], list[date]] = {}
    for year in range(2000, 2028):
        for month in range(1, 13):
            first, length = monthrange(year, month)
            if (length, first) not in kinds:
                days = [date(year, month, 1 + day) for day in range(length)]
                kinds[length, first] = days
    return {
        length: [day for (one, _), days in kinds.items() if one == length for day in days]
        for length, _ in kinds
    }


_DAYS = _kinds_of_months()


def read_cron(text: str) -> str:
    """Return `text` if it is a cron expression that fires at some time.

    Raises PydanticCustomError.
    """
    try:
        fires = _fires(CronSim(text, datetime(2000, 1, 1, tzinfo=ZoneInfo("UTC"))))
    except CronSimError as error:
        rule = f"{A_CRON} ({error})"
        raise PydanticCustomError("cron", "{rule}", {"rule": rule}) from None
    if not fires:
        rule = "must fire at some time; no day of these months is on such a day of the week"
        raise PydanticCustomError("cron", "{rule}", {"rule": rule})
    return text


def _fires(cron: CronSim) -> bool:
    """Return whether any day matches: its number and its weekday may exclude each other."""
    if not cron.day_and:
        return True
    lengths = {monthrange(year, month)[1] for month in cron.months for year in (2000, 2001)}
    return any(cron.match_day(day) for length in lengths for day in _DAYS[length])


def last_fired(cron: str, zone: str, minute: int) -> tuple[float, datetime] | None:
    """Return when `cron` last fired at or before `minute`, in UTC seconds, and the time it names.

    None if there is none within fifty years. In an hour that is repeated, a fixed time fired in the
    first pass, even where it is later on the clock, so the search begins behind that hour. Fixed
    times in an hour that is skipped fire at its end, in the order of the clock: an end 15 2 and a
    start 45 2 both at 03:00.
    """
    at = datetime.fromtimestamp(minute * MINUTE_S, ZoneInfo(zone))
    now_s = at.timestamp()
    repeated_s = now_s - at.replace(fold=0).timestamp()
    search = CronSim(cron, datetime.fromtimestamp(now_s + repeated_s + 1, at.tzinfo), reverse=True)
    fired = next((one for one in search if one.timestamp() <= now_s), None)
    if fired is None:
        return None
    named = CronSim(cron, fired.replace(tzinfo=None) + timedelta(seconds=1), reverse=True)
    return fired.timestamp(), next(named)


def quiet_until(crons: Iterable[str], zone: str, minute: int) -> int:
    """Return the first minute after it at which one of them may fire, or clocks may change."""
    at = datetime.fromtimestamp(minute * MINUTE_S, ZoneInfo(zone))
    named: set[int] = set()
    for one in (CronSim(cron, at) for cron in crons):
        if at.hour in one.hours and at.month in one.months and one.match_day(at.date()):
            named |= one.minutes
    changed = minute + _GRID - minute % _GRID
    later = range(minute + 1, changed)
    return next((one for one in later if (at.minute + one - minute) % 60 in named), changed)
