"""Reduces long series to the few hundred points that a plot can show, keeping every peak."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.outcome import Series

Indexes = NDArray[np.intp]


def extremes(values: Series, buckets: int) -> Indexes:
    """Return the indexes of values [samples] to draw: first, least, most and last of each bucket.

    A drawn line then covers the same pixels as one through all (M4, Jugel et al., VLDB 2014). A
    missing value (nan) is kept if the whole bucket is missing, to show the gap; an infinite one is
    a peak.
    """
    kept: list[int] = []
    for start, end in _bounds(len(values), buckets):
        known = start + np.flatnonzero(~np.isnan(values[start:end]))
        if known.size == 0:
            kept.append(start)
            continue
        part = values[known]
        kept += sorted({*known[[0, -1]], known[np.argmin(part)], known[np.argmax(part)]})
    return np.array(kept, dtype=np.intp)


def turns(columns: NDArray[np.float64], buckets: int) -> Indexes:
    """Return the samples at which any of the columns [columns, samples] steps, with both ends.

    If that is more than two per bucket: the samples of each bucket where the sum of the columns is
    least and most.
    """
    samples = columns.shape[1]
    if samples == 0:
        return np.array([], dtype=np.intp)
    steps = 1 + np.flatnonzero((np.diff(columns, axis=1) != 0).any(axis=0))
    kept = np.unique(np.concatenate([[0], steps, [samples - 1]])).astype(np.intp)
    if kept.size <= 2 * buckets:
        return kept
    return np.unique(np.concatenate([[0], extremes(columns.sum(axis=0), buckets), [samples - 1]]))


def most(values: Series, buckets: int) -> Series:
    """Return the largest known value of each bucket; nan if none is known."""
    return np.array(
        [
            np.nan if np.isnan(part).all() else np.nanmax(part)
            for part in (values[start:end] for start, end in _bounds(len(values), buckets))
        ]
    )


def last(values: Series, buckets: int) -> Series:
    """Return the last value of each bucket."""
    return np.array([values[end - 1] for _, end in _bounds(len(values), buckets)])


def _bounds(samples: int, buckets: int) -> list[tuple[int, int]]:
    edges = np.linspace(0, samples, min(samples, buckets) + 1).astype(int).tolist()
    return list(pairwise(edges))
