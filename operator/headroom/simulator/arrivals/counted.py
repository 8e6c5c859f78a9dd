"""Arrivals counted over short intervals, as in the operator's own recordings; counts are kept.

A recorded count already varies; drawing a Poisson number of that mean would add the variance a
second time. So with scale 1 every interval gets exactly its count, at random instants. With another
scale it gets floor(scale) times the count, and each request of one more copy with the remaining
probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.arrivals.rates import Vector
from headroom.simulator.arrivals.streams import CHUNK, generator
from headroom.simulator.validation import require


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedArrivals:
    """Arrivals per interval, uniform within each; a chunk holds at least one interval."""

    edges_s: Vector
    """[intervals + 1], increasing from 0."""
    counts: NDArray[np.int64]
    """[intervals]."""
    scale: float
    stream: str

    def __post_init__(self) -> None:
        """Raise ValueError for invalid counts."""
        fits = len(self.edges_s) == len(self.counts) + 1 >= 2
        require(
            fits,
            "edges must be one more than counts, of which there must be one",
            len(self.edges_s),
        )
        increase = self.edges_s[0] == 0 and bool((np.diff(self.edges_s) > 0).all())
        require(increase, "edges must increase from 0", "edges that do not")
        require(bool((self.counts >= 0).all()), "counts must be >= 0", int(self.counts.min()))
        require(0 < self.scale <= 1000, "scale must be > 0 and <= 1000", self.scale)

    @property
    def duration_s(self) -> float:
        """Length of the stream."""
        return float(self.edges_s[-1])

    @property
    def mean_rps(self) -> float:
        """Arrivals to expect per second."""
        return self.scale * float(self.counts.sum()) / self.duration_s

    def chunks(self, seed: int) -> Iterator[Vector]:
        """Yield sorted arrival times in [0, duration_s)."""
        chance = generator(seed, self.stream)
        whole = math.floor(self.scale)
        cumulated = np.concatenate(([0], np.cumsum(self.counts))) * self.scale
        first = 0
        while first < len(self.counts):
            until = int(np.searchsorted(cumulated, cumulated[first] + CHUNK, side="right")) - 1
            until = max(first + 1, until)
            counts = self.counts[first:until]
            numbers = whole * counts + chance.binomial(counts, self.scale - whole)
            index = np.repeat(np.arange(first, until), numbers)
            begin, end = self.edges_s[index], self.edges_s[index + 1]
            times = begin + (end - begin) * chance.random(index.size)
            np.minimum(times, np.nextafter(end, 0.0), out=times)
            if times.size:
                times.sort()
                yield times
            first = until
