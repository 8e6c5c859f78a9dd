"""Formats numbers with a few digits and a unit, the same in tables and on the page."""

from __future__ import annotations

import math

UNKNOWN = "unknown"
NEVER = "never"
"""An infinite latency: no answer."""


def seconds(value: float) -> str:
    """Return a latency: 0.0834 is "83 ms", 1.25 is "1.25 s", infinity is "never", nan "unknown"."""
    if not math.isfinite(value):
        return UNKNOWN if math.isnan(value) else NEVER
    if value < 0.01:
        return f"{1000 * value:.2g} ms"
    return f"{1000 * value:.0f} ms" if value < 1 else f"{value:.3g} s"


def duration(value: float) -> str:
    """Return a duration: 45 is "45 s", 240 is "4 min", 9000 is "2.5 h"."""
    if not math.isfinite(value):
        return UNKNOWN if math.isnan(value) else NEVER
    if value < 60:
        return f"{value:.0f} s"
    return f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"


def hours(value: float) -> str:
    """Return GPU-hours: three digits, at least two decimals below ten."""
    if not math.isfinite(value):
        return UNKNOWN
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def percent(value: float) -> str:
    """Return a ratio in percent: 0.98423 is "98.42 %"; only 1 is "100.00 %"."""
    if value < 1:
        value = min(value, 0.9999)
    return f"{100 * value:.2f} %"


def clock(time_s: float) -> str:
    """Return virtual time as h:mm, with seconds if not zero."""
    minutes, rest = divmod(round(time_s), 60)
    text = f"{minutes // 60}:{minutes % 60:02}"
    return f"{text}:{rest:02}" if rest else text


def counted(number: int, noun: str) -> str:
    """Return a count with its noun: 1 seed, 2 seeds."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
