"""Reads a counter series between its points: at one instant per pod.

Interpolated between points, constant before the first and after the last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.flags import all_set
from headroom.scaling.windows.counter_series import CounterSeries

EVERY = slice(None)
"""All counters."""

Rows = int | NDArray[np.intp]
"""One row per pod, [pods], or the same row for all."""


class Place(NamedTuple):
    """The rows around one instant per pod, and the share of the way between them, [pods]."""

    early: Rows
    late: Rows
    part: Vector


def place_of(series: CounterSeries, instants_s: Vector) -> Place:
    """Return where one instant per pod lies, [pods]."""
    times_s, after = series.times_s, _after(series.times_s, instants_s)
    early: Rows
    late: Rows
    if isinstance(after, int):
        if 0 < after < len(times_s):
            start_s = times_s[after - 1]
            part = (instants_s - start_s) / (times_s[after] - start_s)
            return Place(after - 1, after, part)
        late, early = min(after, len(times_s) - 1), max(after, 1) - 1
    else:
        late, early = np.minimum(after, len(times_s) - 1), np.maximum(after, 1) - 1
    start_s = _row(times_s, early)
    span_s = _row(times_s, late) - start_s
    # no span: before the first point or after the last, where the series is constant
    part = (instants_s - start_s) / np.where(span_s > 0, span_s, np.inf)
    return Place(early, late, part)


def counters_at(series: CounterSeries, place: Place, counters: slice = EVERY) -> Vector:
    """Return these counters at a place, [pods, counters]."""
    below = _stacked(series, place.early, counters)
    if not np.count_nonzero(place.part):
        return below
    value: Vector = _stacked(series, place.late, counters) - below
    value *= place.part[:, np.newaxis]  # in place: memory for a table takes longer than the sums
    value += below
    return value


def arrivals_at(series: CounterSeries, place: Place) -> Vector:
    """Return the arrivals at a place, [pods]."""
    below = _row(series.arrivals, place.early)
    value: Vector = below + place.part * (_row(series.arrivals, place.late) - below)
    return value


def _after(times_s: Vector, instants_s: Vector) -> Rows:
    """Return how many points lie at or before one instant per pod."""
    if len(instants_s):  # all pods are mostly scraped in the same ticks
        same = int(times_s[:, 0].searchsorted(instants_s[0], side="right"))
        reached = same == 0 or all_set(times_s[same - 1] <= instants_s)
        if reached and (same == len(times_s) or all_set(times_s[same] > instants_s)):
            return same
    after: NDArray[np.intp] = (times_s <= instants_s).sum(axis=0)
    return after


def _row(table: Vector, rows: Rows) -> Vector:
    chosen: Vector = table[rows] if isinstance(rows, int) else table[rows, np.arange(len(rows))]
    return chosen


def _stacked(series: CounterSeries, rows: Rows, counters: slice) -> Vector:
    """Return these counters of one row per pod, [pods, counters].

    Scrapes of one tick are some milliseconds apart: the pods lie in two neighboring rows, rarely in
    more, so each row is taken as a whole.
    """
    if isinstance(rows, int):
        return _table(series, rows)[:, counters]
    first, *others = set(rows.tolist())
    chosen = _table(series, first)[:, counters].copy()
    for row in others:
        pods = rows == row
        chosen[pods] = _table(series, row)[pods, counters]
    return chosen


def _table(series: CounterSeries, row: int) -> Vector:
    whole = series.points[row]
    if isinstance(whole, np.ndarray):
        return whole
    return np.concatenate(whole).reshape(len(whole), -1)
