"""Histograms with fixed buckets: any two can be merged, whatever the SLO target. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

LATENCY_BOUNDS_S: tuple[float, ...] = tuple(0.001 * 1.15**k for k in range(80))
"""1 ms to 62 s. Neighbours differ by 15 %, the maximum error of a percentile read from them."""

STAGE_BOUNDS_S: tuple[float, ...] = tuple(0.00001 * 2**k for k in range(21))
"""10 us to 10 s: host work may be far shorter than a request."""

BATCH_SIZE_BOUNDS: tuple[float, ...] = (
    *(1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64),
    *(80, 96, 112, 128, 192, 256, 384, 512, 1024),
)

RATIO_BOUNDS: tuple[float, ...] = tuple(0.05 * k for k in range(21))


def label(bound: float) -> str:
    """Return a bound as its `le` label."""
    return format(bound, ".6g")


UNSORTED = 512
"""Values buffered before sorting: appending is cheaper than finding the bucket, because between
requests the bounds are evicted from the CPU cache."""


class Histogram:
    """Counts per bucket, and the sum of the values."""

    __slots__ = ("_counts", "_total", "_unsorted", "bounds")

    def __init__(self, bounds: Sequence[float]) -> None:
        # a bound equals its label, so that a value on the edge is counted where the scraper expects
        self.bounds = [float(label(bound)) for bound in bounds]
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0
        self._unsorted: list[float] = []

    def observe(self, value: float) -> None:
        """Count one value; a bound belongs to its own bucket."""
        self._unsorted.append(value)
        if len(self._unsorted) >= UNSORTED:
            self._sort()

    def observe_all(self, values: Iterable[float]) -> None:
        """Count several values."""
        self._unsorted += values
        if len(self._unsorted) >= UNSORTED:
            self._sort()

    @property
    def counts(self) -> Sequence[int]:
        """Values per bucket; the last one is above the last bound."""
        self._sort()
        return self._counts

    @property
    def total(self) -> float:
        """The sum of the values."""
        self._sort()
        return self._total

    def without(self, parts: Iterable[Histogram]) -> Histogram:
        """Return what is counted here and in none of the parts, whose bounds are the same."""
        rest = Histogram(self.bounds)
        rest._counts, rest._total = list(self.counts), self.total
        for part in parts:
            rest._counts = [all_ - its for all_, its in zip(rest._counts, part.counts, strict=True)]
            rest._total -= part.total
        rest._total = max(0.0, rest._total)  # sums of floating-point numbers: not exact
        return rest

    def _sort(self) -> None:
        counts, bounds = self._counts, self.bounds
        for value in self._unsorted:
            counts[bisect_left(bounds, value)] += 1
        self._total += sum(self._unsorted)
        self._unsorted.clear()

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self.counts)
