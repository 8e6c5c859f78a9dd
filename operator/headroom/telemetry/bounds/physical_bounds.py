"""Rejects pages with values that no server can have counted or measured, naming the metric. Pure.

Each bound is far above any real server, and far below the numbers at which sums, squares and
conversions of the decision lose digits or overflow. Sums over series are checked as sums.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import lt

from headroom.profiles.values import QUANTITIES, Profile
from headroom.telemetry.errors import InvalidMetric

MOST_COUNTED = 2.0**53
"""Above it a float no longer holds every whole number: a counter would no longer rise."""
MOST_AT_ONCE = 2.0**24
"""Requests in one server: a million connections need 20 GB."""
MOST_SECONDS = 86_400.0
"""Longest time of one batch, or of one item."""
MOST_BATCH = 2.0**20
LEAST_SECONDS = 1e-6
"""Shortest time of one batch: what a replica carries is divided by it."""
UNCOUNTED = 16.0
"""Requests that may be between two counters while a page is written."""
HIGH_COUNTER = 30.0
"""A counter that was at least this high falls when its process restarts."""
CLOCKS_S = 1.0
"""Pages are dated by their reader, who may be late."""

_MOST = {
    "waiting": MOST_AT_ONCE,
    "running": MOST_AT_ONCE,
    "in_flight": MOST_AT_ONCE,
    "fixed_cost_s": MOST_SECONDS,
    "item_cost_s": MOST_SECONDS,
    "max_batch": MOST_BATCH,
}
_BOUNDS = tuple(_MOST.get(name, MOST_COUNTED) for name in QUANTITIES)


def check_quantities(profile: Profile, values: Sequence[float | None]) -> None:
    """Check the quantities of one page, in the order of QUANTITIES; raise InvalidMetric.

    A difference of two counters, such as SGLang's seconds of execution, may be below zero while a
    request is in one of them only.
    """
    for index, value in enumerate(values):
        if value is not None and not abs(value) <= _BOUNDS[index]:
            raise InvalidMetric(
                _name(profile, QUANTITIES[index]), f"must be at most {_BOUNDS[index]:g}", value
            )


def check_batch_time(profile: Profile, seconds: float) -> None:
    """Check the time of the largest batch that the reported cost gives; raise InvalidMetric."""
    if seconds < LEAST_SECONDS:
        rule = f"must give at least {LEAST_SECONDS:g} s for the largest batch"
        raise InvalidMetric(_name(profile, "fixed_cost_s"), rule, seconds)


def check_counts(name: str, counts: Sequence[float]) -> None:
    """Check the largest count of a histogram, its last; raise InvalidMetric."""
    if counts and not counts[-1] <= MOST_COUNTED:
        raise InvalidMetric(name, f"must be at most {MOST_COUNTED:g}", counts[-1])


def check_batches(
    profile: Profile, *, batches: float, items: float, seconds: float, largest: float
) -> None:
    """Check what a server counted between two pages; raise InvalidMetric.

    The counters of one page may be one batch apart, since a server adds to one after the other.
    """
    if items > (batches + 1.0) * largest:
        raise InvalidMetric(
            _name(profile, "batch_items"),
            f"must grow by at most {largest:g} for each of {batches:g} batches",
            items,
        )
    check_items(profile, batches=batches, items=items)
    if seconds > (batches + 1.0) * MOST_SECONDS:
        raise InvalidMetric(
            _name(profile, "batch_seconds"),
            f"must be at most {MOST_SECONDS:g} for a batch",
            seconds,
        )


def check_items(profile: Profile, *, batches: float, items: float) -> None:
    """Check that each batch has a request; raise InvalidMetric."""
    if items < batches - 1.0:
        raise InvalidMetric(
            _name(profile, "batches"),
            f"must grow by at most 1 for each of {items:g} items",
            batches,
        )


def check_conservation(
    profile: Profile, *, arrived: float, answered: float, missed: float, in_flight: float
) -> None:
    """Check that each arrived request is in exactly one place; raise InvalidMetric."""
    if not profile.conserves or abs(arrived - answered - missed - in_flight) <= UNCOUNTED:
        return
    raise InvalidMetric(
        _name(profile, "arrived"),
        f"must be the {answered:g} answered, {missed:g} missed and {in_flight:g} in flight",
        arrived,
    )


def check_fall(profile: Profile, counters: Sequence[tuple[str, float, float]]) -> bool:
    """Return whether a process has restarted, of (quantity, before, now); raise InvalidMetric.

    All of its counters begin at zero then. Where one falls and another that was high does not, the
    page is of no process.
    """
    fallen = [(name, now) for name, before, now in counters if now < before]
    if not fallen:
        return False
    for name, before, now in counters:
        if now > before >= HIGH_COUNTER:
            other, value = fallen[0]
            rule = f"must not fall while {_name(profile, name)} rises"
            raise InvalidMetric(_name(profile, other), rule, value)
    return True


def check_buckets(name: str, before: Sequence[float], now: Sequence[float]) -> None:
    """Check that no bucket falls while the count of all does not; raise InvalidMetric."""
    if len(before) == len(now) and any(map(lt, now, before)) and now[-1] >= before[-1]:
        place = next(place for place, count in enumerate(now) if count < before[place])
        raise InvalidMetric(name, "must not fall in one bucket alone", now[place])


def check_durations(
    name: str,
    bounds_s: Sequence[float],
    before: Sequence[float],
    now: Sequence[float],
    *,
    elapsed_s: float,
    in_flight: float,
) -> None:
    """Check that requests that lasted longer than the time since the page before were there then.

    Raises InvalidMetric. Worked: 2 s after a page with 3 requests in flight, at most 3 requests can
    end that have lasted 5 s or longer.
    """
    place = bisect_left(bounds_s, 2.0 * elapsed_s + CLOCKS_S)
    if place >= len(bounds_s) - 1 or len(before) != len(now):
        return
    ended = (now[-1] - now[place]) - (before[-1] - before[place])
    if ended > in_flight + UNCOUNTED:
        raise InvalidMetric(
            name,
            f"must contain at most {in_flight:g} requests longer than {bounds_s[place]:g} s "
            f"that ended within {elapsed_s:g} s",
            ended,
        )


def whole(name: str, value: float) -> int:
    """Return the value of a metric that counts; raise InvalidMetric for a fraction."""
    if value != int(value):
        raise InvalidMetric(name, "must be a whole number", value)
    return int(value)


def _name(profile: Profile, quantity: str) -> str:
    metrics = profile.quantities[quantity]
    return metrics[0].name if metrics else quantity
