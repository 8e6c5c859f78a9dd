"""Appends rows to tables whose columns each have their own times, aligned at the newest row. Pure.

A column without a new value is shifted down by one row, so that the last row has the newest value
of every column; its oldest value is then there twice.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.flags import any_set

Columns = NDArray[np.intp] | None
"""The columns that have a new value; None: all."""

Points = tuple[Vector | tuple[Vector, ...], ...]
"""[depth][columns] of vectors: one table per row, or its vectors if they come from several rows."""

_Kind = TypeVar("_Kind", bound=np.generic)


def append_rows(
    history: NDArray[_Kind], newest: NDArray[_Kind], columns: Columns
) -> NDArray[_Kind]:
    """Return the table, [depth, columns], with a row appended to these columns."""
    longer = np.concatenate((history, newest[np.newaxis]))
    if columns is not None:
        quiet = np.delete(np.arange(len(newest)), columns)
        longer[1:, quiet] = history[:, quiet]
    return longer


def append_points(points: Points, newest: Vector, columns: Columns) -> Points:
    """Return the points, each [columns], with one more at these columns, as `append_rows` does."""
    if columns is None:
        return (*points, newest)
    quiet = set(range(len(newest))).difference(columns.tolist())
    moved: list[Vector | tuple[Vector, ...]] = [points[0]]
    for before, row in pairwise((*points, newest)):
        kept = list(row)
        for column in quiet:
            kept[column] = before[column]
        moved.append(tuple(kept))
    return tuple(moved)


def with_last(history: NDArray[_Kind], newest: NDArray[_Kind]) -> NDArray[_Kind]:
    """Return the table with its last row replaced."""
    return np.concatenate((history[:-1], newest[np.newaxis]))


def widen(history: NDArray[_Kind], first: NDArray[_Kind]) -> NDArray[_Kind]:
    """Return the table with columns added that had these values from the beginning."""
    return np.concatenate((history, np.broadcast_to(first, (len(history), len(first)))), axis=1)


def replace_columns(
    row: NDArray[Any], columns: NDArray[np.intp], values: NDArray[Any]
) -> NDArray[Any]:
    """Return the row with the values of these columns replaced."""
    changed = row.copy()
    changed[columns] = values
    return changed


def first_needed(times_s: Vector, horizon_s: float) -> int:
    """Return the first row that the horizon of some column still needs: its last one before it."""
    needed_s, first = times_s[-1] - horizon_s, 0
    while first < len(times_s) - 1 and not any_set(
        times_s[first + 1] > np.maximum(times_s[first], needed_s)
    ):
        first += 1
    return first
