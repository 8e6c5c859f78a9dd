"""What no server can have counted or measured: such a page is refused, with the metric. Pure.

Each bound is far above any real server, and far below the numbers at which sums, squares and
conversions of the decision lose digits or overflow. Sums over series are checked as sums.
"""

from __future__ import annotations

from collections.abc import Sequence

from headroom.profiles.values import QUANTITIES, Profile
from headroom.telemetry.errors import InvalidMetric

MOST_COUNTED = 2.0**53
"""Above it a float no longer holds every whole number: a counter would stand still."""
MOST_AT_ONCE = 2.0**24
"""Requests in one server: a million connections need 20 GB."""
MOST_SECONDS = 86_400.0
"""Of one batch, or of one item."""
MOST_BATCH = 2.0**20

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
    """Check the quantities of one page, in the order of QUANTITIES; raise InvalidMetric."""
    for index, value in enumerate(values):
        if value is not None and not value <= _BOUNDS[index]:
            raise InvalidMetric(
                _name(profile, QUANTITIES[index]), f"must be at most {_BOUNDS[index]:g}", value
            )


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
    if items < batches - 1.0:
        raise InvalidMetric(
            _name(profile, "batches"),
            f"must grow by at most 1 for each of {items:g} items",
            batches,
        )
    if seconds > (batches + 1.0) * MOST_SECONDS:
        raise InvalidMetric(
            _name(profile, "batch_seconds"),
            f"must be at most {MOST_SECONDS:g} for a batch",
            seconds,
        )


def _name(profile: Profile, quantity: str) -> str:
    metrics = profile.quantities[quantity]
    return metrics[0].name if metrics else quantity
