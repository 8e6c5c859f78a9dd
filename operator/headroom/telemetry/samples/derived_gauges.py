"""Requests waiting and running of servers that do not expose both. Pure.

An average over an instant is no gauge: a batch of 8 that ends between two pages 20 ms apart, and
whose requests waited for 2 s, would be 800 waiting.
"""

from __future__ import annotations

from headroom.telemetry.bounds.physical_bounds import whole
from headroom.telemetry.pages.reading import Reading

LEAST_SPAN_S = 1.0
"""Between two pages of which gauges are derived."""


def derives_gauges(reading: Reading) -> bool:
    """Return whether requests waiting or running are averages since the page before."""
    return reading.in_flight is None and (reading.waiting is None or reading.running is None)


def gauges_of(
    reading: Reading, before: Reading | None, *, elapsed_s: float, room: int
) -> tuple[int | None, int | None]:
    """Return requests waiting and running; None if that needs another page.

    At most `room` run at the same time. Raises InvalidMetric for a gauge that is no whole number.
    """
    if reading.waiting is not None and reading.running is not None:
        waiting = whole("requests waiting", reading.waiting)
        return waiting, whole("requests running", reading.running)
    if reading.in_flight is not None:
        in_flight = whole("requests in flight", reading.in_flight)
        running = min(in_flight, room)
        return in_flight - running, running
    waited = _average(reading, before, "waiting_seconds", elapsed_s)
    ran = _average(reading, before, "running_seconds", elapsed_s)
    if ran is not None:
        ran = min(ran, float(room))
    return _gauge(reading.waiting, waited), _gauge(reading.running, ran)


def grown(reading: Reading, before: Reading | None, name: str) -> float | None:
    """Return the increase of a counter since the page before; None if either lacks it."""
    if before is None:
        return None
    now, then = getattr(reading, name), getattr(before, name)
    return None if now is None or then is None else max(0.0, now - then)


def _gauge(gauge: float | None, average: float | None) -> int | None:
    number = gauge if gauge is not None else average
    return None if number is None else round(number)


def _average(reading: Reading, before: Reading | None, name: str, elapsed_s: float) -> float | None:
    """Return the average number of requests since the previous page, by Little's law."""
    spent_s = grown(reading, before, name)
    return None if spent_s is None or elapsed_s <= 0.0 else spent_s / elapsed_s
