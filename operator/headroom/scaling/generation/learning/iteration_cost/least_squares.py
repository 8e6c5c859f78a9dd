"""Least squares with no part below zero, from X'X and X'y."""

from __future__ import annotations

import math
from operator import mul

import numpy as np

from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.flags import Flags


def non_negative(inner: Vector, right: Vector) -> Vector:
    """Return the least squares with no part below zero (Lawson and Hanson 1974, on X'X and X'y).

    It begins with all parts, of which those below zero are left out: mostly that is the result.
    """
    scale = np.sqrt(np.maximum(inner.diagonal(), _LEAST))
    inner, right = inner / np.outer(scale, scale), right / scale
    taken = _independent(inner)
    parts = _solved(inner, right, taken)
    while (parts < 0.0).any():
        taken &= parts > 0.0
        parts = _solved(inner, right, taken)
    for _ in range(_MOST_STEPS):
        gain = np.where(taken, 0.0, right - inner @ parts)
        if taken.all() or gain.max() <= _ROUNDING * np.abs(right).max():
            break
        taken[gain.argmax()] = True
        parts = _on_the_way(inner, right, parts, taken)
        taken = parts > 0.0
    return np.asarray(parts / scale)


def _independent(inner: Vector) -> Flags:
    """Return the columns that earlier ones do not explain: of multiples the first counts.

    Cholesky's factor of a few columns, row by row; a column without a part of its own gets no row.
    """
    columns, rows = inner.tolist(), list[tuple[int, list[float], float]]()
    for number, column in enumerate(columns):
        explained: list[float] = []
        for place, row, own in rows:
            known = sum(map(mul, row, explained))
            explained.append((column[place] - known) / own)
        squared = column[number] - sum(map(mul, explained, explained))
        if squared > _OWN_SHARE**2:
            rows.append((number, explained, math.sqrt(squared)))
    taken = np.zeros(len(columns), dtype=bool)
    taken[[number for number, _, _ in rows]] = True
    return taken


def _solved(inner: Vector, right: Vector, taken: Flags) -> Vector:
    """Return the least squares of the taken parts; 0 for the others."""
    parts = np.zeros(len(right))
    places = np.flatnonzero(taken)
    chosen = inner[places[:, np.newaxis], places]
    try:
        parts[places] = np.linalg.solve(chosen, right[places])
    except np.linalg.LinAlgError:
        parts[places] = np.linalg.lstsq(chosen, right[places], rcond=None)[0]
    return parts


def _on_the_way(inner: Vector, right: Vector, parts: Vector, taken: Flags) -> Vector:
    """Return the least squares of the taken parts; one that would fall below zero is given up."""
    taken = taken.copy()
    while taken.any():
        wanted = _solved(inner, right, taken)
        low = taken & (wanted <= 0.0)
        if not low.any():
            return wanted
        steps = parts[low] / np.maximum(parts[low] - wanted[low], _LEAST)
        parts = np.maximum(0.0, parts + steps.min() * (wanted - parts))
        taken &= parts > _ROUNDING
    return parts


_LEAST, _ROUNDING, _MOST_STEPS = 1e-300, 1e-10, 30
_OWN_SHARE = 1e-5
"""Share of a column's length that no others explain."""
