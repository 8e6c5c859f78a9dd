"""The flap budget: how often what was removed had to be asked for again.

A flap is a scale-up within a cold start and a minute after a scale-down: the replica that was
removed is paid for a second time before it is worth anything. When an hour has seen as many as the
budget allows nothing ready is removed until the oldest of them is an hour old (asked for in
kubernetes/enhancements#883).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headroom.scaling.law import Element, Law

SLACK_S = 60.0
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaps:
    """When replicas were last removed, and the flaps of the last hour, oldest first."""

    lowered_s: float | None = None
    times_s: tuple[float, ...] = ()

    def moved(self, now_s: float, before: int, after: int, cold_start_s: float) -> Flaps:
        """Return the record with a decision added."""
        if after < before:
            return replace(self, lowered_s=now_s)
        if after == before or self.lowered_s is None:
            return self
        if now_s - self.lowered_s > cold_start_s + SLACK_S:
            return self
        recent = tuple(time_s for time_s in self.times_s if now_s - time_s < HOUR_S)
        return replace(self, times_s=(*recent, now_s))

    def spent(self, now_s: float, law: Law) -> bool:
        """Whether a further flap would exceed the budget of the hour."""
        if not law.has(Element.FLAPS):
            return False
        return sum(now_s - time_s < HOUR_S for time_s in self.times_s) >= law.flaps_per_hour
