"""Measured times in status: three digits as text, or a word for an infinite one."""

from __future__ import annotations

import math

from headroom.api.durations import Duration

UNBOUNDED = "unbounded"
"""An infinite latency: the replicas cannot process the arrivals, or too many requests missed."""


def seconds_of(text: str) -> float | None:
    """Read a time that `duration_text` wrote; None for any other text."""
    if text == UNBOUNDED:
        return math.inf
    try:
        return Duration.parse(text).seconds
    except ValueError:
        return None


def duration_text(seconds: float) -> str:
    """Render a measured time with three digits, which is what it is good for; `unbounded` for inf.

    Raises ValueError for NaN and negative numbers, which are no measurement.
    """
    if seconds == math.inf:
        return UNBOUNDED
    return str(Duration.of_seconds(float(f"{seconds:.3g}")))
