"""Formats numbers with their units; unknown is a dash."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from headroom.api.service_status.demand_status import DemandStatus
from headroom.api.service_status.status_durations import duration_text
from headroom.scaling.values.demand import DemandKnown

UNKNOWN = "\N{EN DASH}"
NARROW = "\N{NARROW NO-BREAK SPACE}"
AT_LEAST, AT_MOST = "\N{GREATER-THAN OR EQUAL TO}", "\N{LESS-THAN OR EQUAL TO}"
_SIGNS = {
    DemandKnown.AT_LEAST.value: AT_LEAST + NARROW,
    DemandKnown.INCLUDES_RETRIES.value: AT_MOST + NARROW,
}


def number(value: float | None) -> str:
    """Format with three digits: 0.25, 12.3, 1 234."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", NARROW)
    return f"{value:.3g}"


def arrivals(rate_rps: float | None, demand: DemandStatus | None) -> str:
    """Format an arrival rate, with a sign where it is only a bound of the demand."""
    sign = "" if rate_rps is None or demand is None else _SIGNS.get(demand.known, "")
    return sign + number(rate_rps)


def percent(ratio: float | None) -> str:
    """Format a ratio in percent."""
    return UNKNOWN if ratio is None or math.isnan(ratio) else f"{100 * ratio:.0f}{NARROW}%"


def seconds(value_s: float | None) -> str:
    """Format a time; infinity is `unbounded`."""
    return UNKNOWN if value_s is None or math.isnan(value_s) else duration_text(value_s)


def promise(text: str) -> tuple[str, str]:
    """Return the measured value and the target of a promise on tokens: `1s (p95, target 2s)`."""
    measured, _, target = text.partition(" (")
    return measured, target.rstrip(")")


def span(length_s: float) -> str:
    """Format a period in minutes, or in hours from two hours on."""
    if length_s < 7200.0:
        return f"{length_s / 60.0:.0f} min"
    return f"{number(length_s / 3600.0)} h"


def clock(time_s: float) -> str:
    """Format the time of day, UTC."""
    return datetime.fromtimestamp(time_s, UTC).strftime("%H:%M:%S")


def ago(time_s: float, now_s: float) -> str:
    """Format an age in its largest unit."""
    gone_s = max(0.0, now_s - time_s)
    for unit, size_s in (("d", 86400), ("h", 3600), ("min", 60)):
        if gone_s >= size_s:
            return f"{gone_s / size_s:.0f} {unit} ago"
    return f"{gone_s:.0f} s ago"


def counted(value: int, noun: str) -> str:
    """Format a count: `1 replica`, `2 replicas`."""
    return f"{number(value)} {noun}{'' if value == 1 else 's'}"
