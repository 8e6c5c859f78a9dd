"""The sums of least squares over intervals: time of an iteration against its computed work.

Columns of X: 1, P, D, KV, and for each share of experts of the grid what is read of them; y is the
time of the mean iteration, the weight of an interval its iterations over y. Then errors of busy
iterations count as shares, and all together the fitted times are those that were measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from headroom.scaling.generation.learning.iteration_cost.experts import SHARES
from headroom.scaling.mathematics.arrays import Vector

Sums = tuple[float, ...]
TERMS = 4
"""1, prompt tokens, sequences, context tokens."""
LEFT, RIGHT = np.triu_indices(TERMS)
SECONDS = 0
"""y'y: engine seconds."""
INNER = slice(1, 1 + len(LEFT))
"""Upper triangle of X'X."""
PRODUCTS = slice(INNER.stop, INNER.stop + TERMS)
"""X'y; the first are iterations."""
ITERATIONS = PRODUCTS.start
INTERVALS = PRODUCTS.stop
READ = INTERVALS + 1
PER_SHARE = TERMS + 2
"""Sums that are read for each share, by 1, P, D, KV, itself and y."""
SUMS = READ + PER_SHARE * len(SHARES)
KEPT = 0.05
"""Weight of what an engine took that has changed since."""


class Squares(NamedTuple):
    """Sums as matrices."""

    inner: Vector
    """X'X, [terms, terms]."""
    products: Vector
    """X'y, [terms]."""
    seconds: float
    """y'y."""
    iterations: float
    intervals: float


def rows(columns: Vector, read: Vector, iterations: Vector, seconds: Vector) -> Vector:
    """Return the sums of each interval alone, [intervals, SUMS].

    `columns` [intervals, TERMS], `read` [intervals, shares] of the experts; `seconds` of the mean
    iteration.
    """
    weights = (iterations / seconds)[:, np.newaxis]
    weighted = columns * weights
    found = np.empty((len(columns), SUMS))
    found[:, SECONDS] = iterations * seconds
    found[:, INNER] = columns[:, LEFT] * weighted[:, RIGHT]
    found[:, PRODUCTS] = columns * iterations[:, np.newaxis]
    found[:, INTERVALS] = 1.0
    of_read = found[:, READ:].reshape(len(columns), -1, PER_SHARE)
    of_read[:, :, :TERMS] = read[:, :, np.newaxis] * weighted[:, np.newaxis, :]
    of_read[:, :, TERMS] = read * read * weights
    of_read[:, :, TERMS + 1] = read * iterations[:, np.newaxis]
    return found


def faded(before: Sums | None, fade: float, added: Sums) -> Sums:
    """Return older sums, faded, and those that are added."""
    if before is None:
        return added
    return tuple([fade * old + new for old, new in zip(before, added, strict=True)])


def rescaled(sums: Sums, factor: float) -> Sums:
    """Return sums as if every iteration had taken `factor` times as long, with little weight.

    The weights n / y fall by the factor: X'X by it, X'y not at all, y'y rises.
    """
    found = [KEPT / factor * value for value in sums]
    for place in _OF_TIMES:
        found[place] = KEPT * sums[place]
    found[SECONDS] = KEPT * factor * sums[SECONDS]
    return tuple(found)


_OF_TIMES = (
    *range(PRODUCTS.start, READ),
    *range(READ + PER_SHARE - 1, SUMS, PER_SHARE),
)


def total(every: Iterable[Sums]) -> Vector:
    """Return the sum over bins."""
    found: Vector = np.array(list(every)).reshape(-1, SUMS).sum(axis=0)
    return found


def squares(sums: Vector, share: float = 0.0) -> Squares:
    """Return the matrices, with the experts of this share of the grid as last term if not 0."""
    size = TERMS + (share > 0.0)
    inner, products = np.zeros((size, size)), np.empty(size)
    inner[LEFT, RIGHT] = inner[RIGHT, LEFT] = sums[INNER]
    products[:TERMS] = sums[PRODUCTS]
    if share > 0.0:
        start = READ + PER_SHARE * SHARES.index(share)
        inner[TERMS, :] = inner[:, TERMS] = sums[start : start + TERMS + 1]
        products[TERMS] = sums[start + TERMS + 1]
    return Squares(
        inner=inner,
        products=products,
        seconds=float(sums[SECONDS]),
        iterations=float(sums[ITERATIONS]),
        intervals=float(sums[INTERVALS]),
    )
