"""How plans write numbers: milliseconds, spans, and what has no bound."""

from __future__ import annotations

import math

from headroom.api.durations import Duration


def ms(seconds: float) -> str:
    """Write a latency; `unbounded` where the queue grows without end."""
    if math.isinf(seconds):
        return "unbounded"
    if seconds >= 9.995:
        return f"{seconds:.3g} s"
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.0995 else f"{1000 * seconds:.3g} ms"


def span(seconds: float) -> str:
    """Write a time as a resource would, to the millisecond."""
    return str(Duration.of_seconds(round(seconds, 3)))


def finite(value: float) -> float | None:
    """Return the value for JSON, which has no infinity: None is without bound."""
    return value if math.isfinite(value) else None


def counted(number: int, noun: str) -> str:
    """1 replica, 2 replicas."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
