"""Flaps: replicas that were removed and soon needed again are kept longer next time.

A flap is a scale-up within 15 minutes, or a cold start and a minute, after a scale-down: the
removed replicas are paid for a second time before they are useful. Each flap of the last hour makes
the hold of the replicas that took part in it four times as long: what a single surge needed in
addition is removed after the usual hold (a flap budget was requested in
kubernetes/enhancements#883). After four in an hour nothing is removed that arrivals needed in it.

Why longer holds work: with a stationary random load the most that was needed in the last W seconds
is exceeded within the next T with probability about T / (W + T), whatever the distribution of the
load.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.scaling.frozen import replace
from headroom.scaling.values.tuning import HOUR_S, SLACK_S

GROWTH = 4.0
SOON_S = 900.0
"""A removal that is undone within so long was one too many, also if a cold start is short."""
LONGEST_HOLD_S = HOUR_S
"""Longest hold caused by flaps; they are forgotten after the same time."""
MOST_IN_AN_HOUR = 4
"""The budget: after this many flaps every replica that arrivals needed is kept for an hour, because
a load that rises in waves flaps at a higher number each time."""
EVERY = 1 << 31
"""More replicas than any service has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaps:
    """The latest removal, and the flaps of the last hour, oldest first."""

    lowered_s: float | None = None
    lowered_from: int = 0
    recent: tuple[tuple[float, int], ...] = ()
    """(time, replicas that were removed and needed again)."""

    def moved(self, now_s: float, before: int, after: int, cold_start_s: float) -> Flaps:
        """Return the record with a decision added."""
        soon_s = max(SOON_S, cold_start_s + SLACK_S)
        if after < before:
            within = self.lowered_s is not None and now_s - self.lowered_s <= soon_s
            start = max(before, self.lowered_from) if within else before
            return replace(self, lowered_s=now_s, lowered_from=start)
        if after == before or self.lowered_s is None:
            return self
        if now_s - self.lowered_s > soon_s:
            return self
        kept = tuple(  # one removal is one flap, however many steps it takes to undo it
            flap for flap in self.recent if now_s - flap[0] < HOUR_S and flap[0] < self.lowered_s
        )
        return replace(self, recent=(*kept, (now_s, min(after, self.lowered_from))))

    def holds(self, now_s: float, usual_s: float) -> tuple[tuple[float, int], ...]:
        """Return each longer hold, and up to how many replicas it applies; the longest last.

        A replica's hold follows from the flaps that it took part in. Worked: flaps to 10, 4 and 4
        replicas at 90 s: 10 are kept for 6 minutes, 4 of them for 24 minutes and then an hour.
        """
        levels = (level for time_s, level in self.recent if now_s - time_s < HOUR_S)
        ranked = sorted(levels, reverse=True)
        longest_s = max(LONGEST_HOLD_S, usual_s)
        holds = tuple(
            (min(longest_s, usual_s * GROWTH**count), level)
            for count, level in enumerate(ranked, start=1)
        )
        return holds if len(ranked) < MOST_IN_AN_HOUR else (*holds, (longest_s, EVERY))

    def kept(self, now_s: float) -> int:
        """Return how many replicas have flapped as often as an hour may contain flaps.

        Whatever needed them, a queue or a replica that fails, will need them again: what is worked
        off once does not come four times. Worked: flaps to 7, 6, 8, 6 and 7 replicas: six.
        """
        levels = sorted(
            (level for at_s, level in self.recent if now_s - at_s < HOUR_S), reverse=True
        )
        return levels[MOST_IN_AN_HOUR - 1] if len(levels) >= MOST_IN_AN_HOUR else 0
