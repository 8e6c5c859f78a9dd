"""Caches the floor of a service's schedules until one of them may start or end.

Each service has its own: in a cache of all services, those with many schedules would push out the
answers of the others, and each tick would search again.
"""

from __future__ import annotations

from collections.abc import Sequence

from headroom.api.service_spec.schedules import Floor, Schedule, Span, floor_at, span_at


class Floors:
    """The spans that the last call used: at most two of each schedule."""

    def __init__(self) -> None:
        self._spans: dict[Schedule, tuple[Span, ...]] = {}

    def at(self, schedules: Sequence[Schedule], least: int, now_s: float, lead_s: float) -> Floor:
        """Return `floor_at`."""
        used: dict[Schedule, tuple[Span, ...]] = {}

        def span(schedule: Schedule, minute: int) -> Span:
            known = (*used.get(schedule, ()), *self._spans.get(schedule, ()))
            found = next((one for one in known if one.begins <= minute < one.ends), None)
            found = found or span_at(schedule, minute)
            used[schedule] = (*used.get(schedule, ()), found)
            return found

        floor = floor_at(schedules, least, now_s, lead_s, span)
        self._spans = used
        return floor
