"""Counts how many requests miss the target: over the last hour, and while capacity sufficed.

The budget is the share that may miss: 5 % for a 95th percentile. Misses while replicas were too few
for the counted arrivals say nothing about the margin: they are the price of a cold start. Misses at
a steady load with enough replicas say that the service's bursts need more than the model knows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.scaling.frozen import replace
from headroom.scaling.values.tuning import HOUR_S
from headroom.scaling.windows.counter_series import LATENCY, MISSED
from headroom.scaling.windows.histogram import at_least_late
from headroom.scaling.windows.sample_intake import REJECTED
from headroom.scaling.windows.sliding_windows import Windows

_FADES_BELOW = 0.8
"""Share of the budget: only an hour with fewer misses lets margin and reserve fade."""
_LEAST_REQUESTS = 60.0
"""Fewer requests prove nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Requests that ended since the last tick."""

    ended: float
    late: float
    """Answered after the target, or not at all."""

    @classmethod
    def of(cls, windows: Windows, target_s: float, failing: float = 0.0) -> Outcomes:
        """Return the outcomes of the latest tick without the share `failing` whatever the load."""
        added = windows.series.added.sum(axis=0)
        if not len(windows.bounds_s) or not len(added):
            return cls(ended=0.0, late=0.0)
        latency, missed = added[LATENCY:], float(added[MISSED])
        ended = max(0.0, float(latency[-1]) + missed)
        late = float(at_least_late(windows.bounds_s, latency, target_s)) + missed
        late = min(ended, max(0.0, late))  # whatever a page says
        errors = min(missed, failing * ended)
        return cls(ended=ended - errors, late=max(0.0, late - errors))


def one_alone_is_late(windows: Windows, target_s: float, window_s: float, allowed: float) -> bool:
    """Return whether many requests of one replica miss, and few enough of all others together.

    More replicas would not help it. Worked: of three with 400 requests each one misses 200, the
    others 30: 50 %, and 3.75 % where 5 % may miss. One of 17 with few requests each often misses
    many of its own by chance; then the others together miss more than it.
    """
    columns, bounds_s = windows.series.columns, windows.bounds_s
    if len(columns) < 2 or not len(bounds_s):
        return False
    counted = windows.counted(window_s)
    ended = counted[:, -1] + counted[:, MISSED]
    late = at_least_late(bounds_s, counted[:, LATENCY:], target_s) + counted[:, MISSED]
    late = late.clip(0.0, ended)
    worst = int(late.argmax())
    if worst == columns.get(REJECTED) or late[worst] <= _MANY_OF_ONE * ended[worst]:
        return False
    others, others_late = float(ended.sum() - ended[worst]), float(late.sum() - late[worst])
    return others > 0.0 and others_late <= min(allowed * others, float(late[worst]))


_MANY_OF_ONE = 0.25
"""Bursts that happen to meet one replica of two make an eighth of its requests late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBudget:
    """Requests and misses: faded over an hour, and since the load has been steady."""

    ended: float = 0.0
    late: float = 0.0
    steady_ended: float = 0.0
    """With enough replicas for the counted arrivals; since the margin last changed."""
    steady_late: float = 0.0
    pending: tuple[tuple[float, Outcomes], ...] = ()
    """(age, outcomes) of ticks that seem steady, newest last: the first misses of a jump come
    before the counted rate shows it."""

    def observe(
        self, outcomes: Outcomes, elapsed_s: float, *, steady: bool, pace: float = 1.0
    ) -> ErrorBudget:
        """Return the budget with the outcomes of a tick added; windows are `pace` times as long."""
        fade = math.exp(-elapsed_s / HOUR_S)
        within = math.exp(-elapsed_s / (pace * EVIDENCE_S))
        aged = [(age_s + elapsed_s, old) for age_s, old in self.pending] if steady else []
        first = 0  # of those that are not proven yet
        while first < len(aged) and aged[first][0] > pace * CONFIRMED_S:
            first += 1
        proven, young = [old for _, old in aged[:first]], aged[first:]
        return ErrorBudget(
            ended=fade * self.ended + outcomes.ended,
            late=fade * self.late + outcomes.late,
            steady_ended=within * self.steady_ended + sum(old.ended for old in proven),
            steady_late=within * self.steady_late + sum(old.late for old in proven),
            pending=(*young, (0.0, outcomes)) if steady else (),
        )

    def unspent(self, allowed: float) -> float:
        """Return the share of four fifths of the hour's budget that is left; 0 while unknown.

        What fades while requests are in time fades with it.
        """
        if self.late_share is None:
            return 0.0
        return max(0.0, 1.0 - self.late_share / (_FADES_BELOW * allowed))

    def without_evidence(self) -> ErrorBudget:
        """Return the budget after the margin has used up the steady evidence."""
        return replace(self, steady_ended=0.0, steady_late=0.0, pending=())

    @property
    def late_share(self) -> float | None:
        """Share of the last hour's requests that missed; None before enough have ended."""
        return self.late / self.ended if self.ended >= _LEAST_REQUESTS else None

    def steady_burn(self, allowed: float) -> float:
        """Return how many times the allowed share missed at a steady load; 0 if within chance.

        Worked: 200 requests, 5 % allowed: 10 +- 3.2; 17 misses are 1.7 times the budget, 16 none.
        """
        if self.steady_ended < _LEAST_REQUESTS:
            return 0.0
        expected = allowed * self.steady_ended
        if self.steady_late <= expected + _DEVIATIONS * math.sqrt(max(1.0, expected)):
            return 0.0
        return self.steady_late / expected


EVIDENCE_S = 300.0
CONFIRMED_S = 30.0
"""A stable window: until then a jump shows in the counted rate."""
_DEVIATIONS = 2.0
