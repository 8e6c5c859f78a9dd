"""Surges: which came at regular times, and when the next one is due.

Timers start much of real load: 29 % of the functions in Shahrad et al. 2020 (Serverless in the
Wild). A surge that is shorter than a cold start is lost unless replicas wait for it. Three at equal
distances are a timer if surges at random times would hardly have met so; the next one is expected
as long after the latest. One that does not come ends the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

APART_S = 120.0
"""At least between two of them."""
LONGEST_S = 600.0
"""What lasts longer is the load."""
REMEMBERED = 64
TOLERANCE_S, TOLERANCE = 10.0, 0.01
"""How far from its time one may come: 10 s, or 1 % of the distance."""
SHORTEST_ROW = 3
ACCIDENT = 0.05
"""A row is believed if so many surges at random times had fewer such rows than this, on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surge:
    """A rise that stood out, until half of it was gone."""

    began_s: float
    before_rps: float
    peak_rps: float
    """The largest rate of the stable window in it."""
    over: bool = False

    def at(self, now_s: float, rate_rps: float, window_s: float) -> Surge:
        """Return it with this instant in it, or over."""
        peak_rps, length_s = max(self.peak_rps, rate_rps), now_s - self.began_s
        fallen = length_s > 2 * window_s and rate_rps < (self.before_rps + peak_rps) / 2
        if fallen or length_s > LONGEST_S:
            return replace(self, peak_rps=peak_rps, over=True)
        return self if peak_rps == self.peak_rps else replace(self, peak_rps=peak_rps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """The next one of a row."""

    at_s: float
    tolerance_s: float
    """By how much it may be early or late."""
    rate_rps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Surges:
    """Those seen, oldest first, and those that are due."""

    seen: tuple[Surge, ...] = ()
    due: tuple[Due, ...] = ()

    def noted(self, now_s: float, rate_rps: float, stands_out: bool, window_s: float) -> Surges:
        """Return the record with this instant's rate (of a window so long) added."""
        latest = self.seen[-1] if self.seen else None
        if latest is not None and not latest.over:
            going = latest.at(now_s, rate_rps, window_s)
            if going is latest:
                return self
            seen = (*self.seen[:-1], going)
            due = (*self._open(now_s), *next_of(seen)) if going.over else self.due
            return Surges(seen=seen, due=due)
        if not stands_out or (latest is not None and now_s - latest.began_s < APART_S):
            return self
        new = Surge(began_s=now_s, before_rps=rate_rps, peak_rps=rate_rps)
        return replace(self, seen=(*self.seen[1 - REMEMBERED :], new))

    def _open(self, now_s: float) -> Iterable[Due]:
        return (due for due in self.due if now_s < due.at_s + due.tolerance_s)

    def expected_rps(self, now_s: float, within_s: float) -> float:
        """Return the largest rate of what is due within so long; 0 where nothing is."""
        return max(
            (
                due.rate_rps
                for due in self._open(now_s)
                if now_s + within_s >= due.at_s - due.tolerance_s
            ),
            default=0.0,
        )


def next_of(seen: Sequence[Surge]) -> tuple[Due, ...]:
    """Return when the next one is due, if the latest one ends a row that is no accident.

    Of n surges at random times in the T seconds before the latest, one is within the tolerance of a
    given instant with probability q = 2 tolerance n / T. So p distances of which twice fits into T
    have p q^(k - 2) rows of k by accident. Worked: two surges 20 and 40 minutes before, at 12 s:
    q = 0.02, p = 1. The shortest distance that is believed counts.
    """
    latest, before = seen[-1], seen[:-1]
    if len(before) < SHORTEST_ROW - 1:
        return ()
    watched_s = latest.began_s - before[0].began_s
    distances_s = [latest.began_s - one.began_s for one in reversed(before)]
    fitting = sum(2 * distance_s <= watched_s + TOLERANCE_S for distance_s in distances_s)
    for distance_s in distances_s:
        tolerance_s = max(TOLERANCE_S, TOLERANCE * distance_s)
        row = _row(seen, distance_s, tolerance_s)
        meeting = min(1.0, 2 * tolerance_s * len(before) / watched_s)
        accidents = fitting * meeting ** (len(row) - 2)
        if len(row) >= SHORTEST_ROW and accidents < ACCIDENT:
            peaks = sorted(surge.peak_rps for surge in row)
            usual_rps = peaks[len(peaks) // 2]
            at_s = latest.began_s + distance_s
            return (Due(at_s=at_s, tolerance_s=tolerance_s, rate_rps=usual_rps),)
    return ()


def _row(seen: Sequence[Surge], distance_s: float, tolerance_s: float) -> list[Surge]:
    """Return the latest one and those that came a distance before one another, newest first."""
    row = [seen[-1]]
    while True:
        due_s = row[-1].began_s - distance_s
        near = [surge for surge in seen if abs(surge.began_s - due_s) <= tolerance_s]
        if not near:
            return row
        row.append(min(near, key=lambda surge: abs(surge.began_s - due_s)))
