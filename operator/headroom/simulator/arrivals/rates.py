"""A piecewise linear rate over time, and the Poisson process with that rate.

With a unit-rate Poisson process u on the axis of the cumulated rate L(t), the times t with L(t) = u
are a Poisson process of rate L'(t) (the time-change theorem). L is inverted exactly: it is linear
where the rate is constant, quadratic where it is a slope. Given their number, the arrivals in an
interval of constant rate are uniform in it: a bin of a rate-only trace gets Poisson(k * requests).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.arrivals.streams import CHUNK
from headroom.simulator.validation import require

Vector = NDArray[np.float64]

WORTH_A_PASS = 500
"""Pieces with at least this many arrivals are computed separately."""

SHORTEST_S = 1e-9
"""Pieces not longer than this are ignored."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A rate in pieces: piece i runs from edges_s[i] to edges_s[i+1], linear between its two rates.

    A jump is two pieces that differ where they meet. Edges begin at 0 and never decrease; a piece
    without length is ignored.
    """

    edges_s: Vector
    """[pieces + 1]."""
    start_rps: Vector
    """[pieces]."""
    end_rps: Vector
    """[pieces]."""

    def __post_init__(self) -> None:
        """Raise ValueError for pieces that do not form a rate."""
        edges, rates = self.edges_s, np.concatenate((self.start_rps, self.end_rps))
        require(len(edges) >= 2, "a rate must have at least one piece", max(0, len(edges) - 1))
        fits = len(self.start_rps) == len(self.end_rps) == len(edges) - 1
        require(fits, "a rate must have two values per piece", len(rates))
        require(bool(np.isfinite(edges).all()), "edges must be finite", "one that is not")
        require(edges[0] == 0, "a rate must begin at 0 s", float(edges[0]))
        require(bool((np.diff(edges) >= 0).all()), "edges must not decrease", "one that does")
        require(edges[-1] > 0, "a rate must last longer than 0 s", float(edges[-1]))
        wrong = rates[~((rates >= 0) & np.isfinite(rates))]
        require(wrong.size == 0, "rates must be finite and >= 0", wrong[:1])

    @classmethod
    def of(cls, pieces: Sequence[tuple[float, float, float]]) -> Profile:
        """Return the rate made of pieces (seconds, rate at the start, rate at the end)."""
        lengths = np.array([piece[0] for piece in pieces], dtype=float)
        return cls(
            edges_s=np.concatenate(([0.0], np.cumsum(lengths))),
            start_rps=np.array([piece[1] for piece in pieces], dtype=float),
            end_rps=np.array([piece[2] for piece in pieces], dtype=float),
        )

    @property
    def duration_s(self) -> float:
        """End of the last piece."""
        return float(self.edges_s[-1])

    @cached_property
    def requests(self) -> float:
        """Expected arrivals in total."""
        return float(np.sum(self._masses))

    @property
    def mean_rps(self) -> float:
        """Expected arrivals per second, on average."""
        return self.requests / self.duration_s

    def scaled(self, factor: float) -> Profile:
        """Return the same shape times a factor."""
        require(0 <= factor < math.inf, "scale must be finite and >= 0", factor)
        return Profile(
            edges_s=self.edges_s,
            start_rps=self.start_rps * factor,
            end_rps=self.end_rps * factor,
        )

    @property
    def _masses(self) -> Vector:
        return 0.5 * (self.start_rps + self.end_rps) * np.diff(self.edges_s)

    @cached_property
    def _inverse(self) -> _Inverse:
        masses, lengths = self._masses, np.diff(self.edges_s)
        carrying = (masses > 0) & (lengths > SHORTEST_S)
        masses = masses[carrying]
        starts, ends = self.edges_s[:-1][carrying], self.edges_s[1:][carrying]
        first, last = self.start_rps[carrying], self.end_rps[carrying]
        slopes = (last - first) / (ends - starts)
        return _Inverse(
            cumulated=np.concatenate(([0.0], np.cumsum(masses))),
            starts_s=starts,
            ends_s=np.minimum(ends, np.nextafter(self.duration_s, 0.0)),
            rates=first,
            slopes=slopes,
            flat=bool((slopes == 0).all()),
        )

    def poisson(self, chance: np.random.Generator, offset_s: float = 0.0) -> Iterator[Vector]:
        """Yield the arrivals of one Poisson process of this rate, sorted, CHUNK at a time.

        All lie in [offset_s, offset_s + duration_s).
        """
        inverse = self._inverse
        total, at, last_s = float(inverse.cumulated[-1]), 0.0, 0.0
        while at < total:
            left = total - at
            # Six standard deviations more than expected: only long streams need a second draw.
            size = min(CHUNK, int(left + 6 * math.sqrt(left)) + 16)
            unit = chance.standard_exponential(size)
            np.cumsum(unit, out=unit)
            unit += at
            at = float(unit[-1])
            if at >= total:
                unit = unit[: np.searchsorted(unit, total)]
            if unit.size:
                times = inverse.times_s(unit)
                if times[0] < last_s:  # by rounding, across chunks of one slope
                    np.maximum(times, last_s, out=times)
                last_s = float(times[-1])
                yield times + offset_s if offset_s else times


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inverse:
    """The cumulated rate, prepared for inversion; pieces without arrivals are left out."""

    cumulated: Vector
    """[pieces + 1]."""
    starts_s: Vector
    ends_s: Vector
    rates: Vector
    slopes: Vector
    flat: bool

    def times_s(self, unit: Vector) -> Vector:
        """Return when the cumulated rate reaches these sorted values."""
        low = int(np.searchsorted(self.cumulated, unit[0], side="right")) - 1
        high = int(np.searchsorted(self.cumulated, unit[-1], side="right"))
        inner = np.searchsorted(unit, self.cumulated[low + 1 : high])
        bounds = np.concatenate(([0], inner, [unit.size]))
        if unit.size < WORTH_A_PASS * (high - low):
            return self._within(unit, np.repeat(np.arange(low, high), np.diff(bounds)))
        times = np.empty_like(unit)
        for piece, begin, end in zip(range(low, high), bounds[:-1], bounds[1:], strict=True):
            times[begin:end] = self._within(unit[begin:end], slice(piece, piece + 1))
        return times

    def _within(self, unit: Vector, piece: NDArray[np.intp] | slice) -> Vector:
        beyond = unit - self.cumulated[piece]
        rates = self.rates[piece]
        if self.flat:
            times = np.divide(beyond, rates, out=beyond)
        else:
            # rate * x + slope * x^2 / 2 = beyond, in the form that is exact for small slopes.
            root = beyond * (2 * self.slopes[piece])
            root += rates**2
            np.sqrt(np.maximum(root, 0.0, out=root), out=root)
            root += rates + np.finfo(float).tiny
            beyond *= 2
            times = np.divide(beyond, root, out=beyond)
        times += self.starts_s[piece]
        np.minimum(times, self.ends_s[piece], out=times)
        if not self.flat:
            np.maximum.accumulate(times, out=times)
        return times
