"""Stores the recent counters of all pods as monotone series, one column per pod.

A restarted process continues where the former one stopped, so a series never falls. Each column has
its own times: the series of a pod without new scrapes stays unchanged while it is tracked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.frozen import replace
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.flags import any_set
from headroom.scaling.windows.aligned_rows import (
    Points,
    append_points,
    append_rows,
    first_needed,
    replace_columns,
    widen,
    with_last,
)

HORIZON_S, STABLE_WINDOWS = 75.0, 2.5
"""Least history that is kept: two stable windows of 30 s and some ticks."""
FINEST = 40
"""Points of a longer history, in which older ones are further apart."""

ARRIVALS, MISSED, BATCHES, BATCH_ITEMS, BATCH_SECONDS, RETRIED, LATENCY = 0, 1, 2, 3, 4, 5, 6
"""Counters of one scrape, in order; the latency buckets follow from LATENCY on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CounterSeries:
    """The series of all pods; immutable: no array is changed after it was stored."""

    columns: Mapping[str, int]
    """The column of each pod, in order."""
    times_s: Vector
    """[depth, pods], oldest first; a series that began later repeats its first point before it."""
    arrivals: Vector
    """[depth, pods]; read more often than whole points."""
    points: Points
    """[depth][pods] of vectors, [counters]. A tick adds one table and copies no other, as a single
    large table would require."""
    newest: Vector
    """The last points, [pods, counters]."""
    scraped: Vector
    """The last scrapes as read, before they were added to the series, [pods, counters]."""
    added: Vector
    """The increase of the latest tick, [pods, counters]."""

    @classmethod
    def empty(cls, counters: int) -> CounterSeries:
        """Return the series of no pod, for scrapes with this many counters."""
        none = np.empty((0, counters))
        return cls(
            columns={},
            times_s=np.empty((1, 0)),
            arrivals=np.empty((1, 0)),
            points=((),),
            newest=none,
            scraped=none,
            added=none,
        )

    def add_pods(self, pods: Sequence[str], times_s: Vector, counters: Vector) -> CounterSeries:
        """Return the series with pods added that begin at these points, [pods, counters]."""
        size = len(self.columns)
        return CounterSeries(
            columns=dict(self.columns) | {pod: size + number for number, pod in enumerate(pods)},
            times_s=widen(self.times_s, times_s),
            arrivals=widen(self.arrivals, counters[:, ARRIVALS]),
            points=tuple((*row, *counters) for row in self.points),
            newest=np.concatenate((self.newest, counters)),
            scraped=np.concatenate((self.scraped, counters)),
            added=np.concatenate((self.added, np.zeros_like(counters))),
        )

    def without(self, gone: set[str]) -> CounterSeries:
        """Return the series of all pods except these."""
        kept = [pod for pod in self.columns if pod not in gone]
        chosen = [self.columns[pod] for pod in kept]
        return CounterSeries(
            columns={pod: column for column, pod in enumerate(kept)},
            times_s=self.times_s[:, chosen],
            arrivals=self.arrivals[:, chosen],
            points=tuple(tuple([row[column] for column in chosen]) for row in self.points),
            newest=self.newest[chosen],
            scraped=self.scraped[chosen],
            added=self.added[chosen],
        )

    def append(
        self,
        pods: Sequence[str],
        times_s: Vector,
        counters: Vector,
        horizon_s: float = HORIZON_S,
    ) -> CounterSeries:
        """Append a scrape newer than the last to each of these pods, [pods, counters].

        Of a longer horizon than usual the last point moves while the one before is near enough.
        """
        if not pods:
            return self.append_empty()
        scraped_columns = None
        if list(pods) != list(self.columns):
            scraped_columns = np.array([self.columns[pod] for pod in pods])
        scraped = (
            counters
            if scraped_columns is None
            else replace_columns(self.scraped, scraped_columns, counters)
        )
        added = _increase(self.scraped, scraped)
        newest = self.newest + added
        if scraped_columns is not None:
            times_s = replace_columns(self.times_s[-1], scraped_columns, times_s)
        if self._moves_last(times_s, scraped_columns, horizon_s):
            all_s = with_last(self.times_s, times_s)
            arrivals = with_last(self.arrivals, newest[:, ARRIVALS])
            points: Points = (*self.points[:-1], newest)
        else:
            all_s = append_rows(self.times_s, times_s, scraped_columns)
            arrivals = append_rows(self.arrivals, newest[:, ARRIVALS], scraped_columns)
            points = append_points(self.points, newest, scraped_columns)
        first = first_needed(all_s, horizon_s)
        return CounterSeries(
            columns=self.columns,
            times_s=all_s[first:],
            arrivals=arrivals[first:],
            points=points[first:],
            newest=newest,
            scraped=scraped,
            added=added,
        )

    def _moves_last(
        self, times_s: Vector, scraped_columns: NDArray[np.intp] | None, horizon_s: float
    ) -> bool:
        if len(self.points) < 2 or horizon_s <= HORIZON_S:
            return False
        since_s = times_s - self.times_s[-2]
        scraped_s = since_s if scraped_columns is None else since_s[scraped_columns]
        return not any_set(scraped_s >= horizon_s / FINEST)

    def rebased(self, pods: Sequence[str], counters: Vector) -> CounterSeries:
        """Return the series whose next increase counts from here, [pods, counters]."""
        columns = np.array([self.columns[pod] for pod in pods])
        return replace(self, scraped=replace_columns(self.scraped, columns, counters))

    def append_empty(self) -> CounterSeries:
        """Return the series after a tick without any scrape."""
        return replace(self, added=np.zeros_like(self.newest))


def _increase(before: Vector, scraped: Vector) -> Vector:
    """Return the increases of a scrape's counters, [pods, counters].

    Arrivals that fell were reset to zero by a restart of the process, with all other counters.
    Where others fall and arrivals do not, they have not grown: the page before was wrong.
    """
    added = scraped - before
    if any_set(added < 0):
        restarted = added[:, ARRIVALS] < 0
        added[restarted] = scraped[restarted]
        added = np.maximum(added, 0.0)
    return added
