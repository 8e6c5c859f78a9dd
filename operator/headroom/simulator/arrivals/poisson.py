"""Poisson arrivals with a given rate, or with a rate that switches at random."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headroom.simulator.arrivals.rates import Profile, Vector
from headroom.simulator.arrivals.streams import generator
from headroom.simulator.validation import require

PHASES = 2048
"""Phases of an on/off source drawn at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonArrivals:
    """A Poisson process that follows a rate."""

    profile: Profile
    stream: str
    """Name of the random stream: the service's name."""

    @property
    def duration_s(self) -> float:
        """Length of the stream."""
        return self.profile.duration_s

    @property
    def mean_rps(self) -> float:
        """Arrivals to expect per second."""
        return self.profile.mean_rps

    def chunks(self, seed: int) -> Iterator[Vector]:
        """Yield sorted arrival times in [0, duration_s)."""
        return self.profile.poisson(generator(seed, self.stream))


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOffArrivals:
    """A Poisson process that switches between two rates after exponential times (MMPP-2).

    It starts in its stationary state: on with probability mean_on / (mean_on + mean_off).
    """

    duration_s: float
    on_rps: float
    off_rps: float
    mean_on_s: float
    mean_off_s: float
    stream: str

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid source."""
        require(
            0 < self.duration_s < math.inf, "duration must be > 0 s and finite", self.duration_s
        )
        for name in ("on_rps", "off_rps"):
            rate = getattr(self, name)
            require(0 <= rate < math.inf, f"{name} must be finite and >= 0", rate)
        for name in ("mean_on_s", "mean_off_s"):
            length_s = getattr(self, name)
            require(0 < length_s < math.inf, f"{name.removesuffix('_s')} must be > 0 s", length_s)

    @property
    def mean_rps(self) -> float:
        """Arrivals to expect per second."""
        cycle_s = self.mean_on_s + self.mean_off_s
        return (self.on_rps * self.mean_on_s + self.off_rps * self.mean_off_s) / cycle_s

    def chunks(self, seed: int) -> Iterator[Vector]:
        """Yield sorted arrival times in [0, duration_s)."""
        chance = generator(seed, self.stream)
        on_first = chance.random() < self.mean_on_s / (self.mean_on_s + self.mean_off_s)
        on = (np.arange(PHASES) % 2 == 0) == on_first
        rates = np.where(on, self.on_rps, self.off_rps)
        means = np.where(on, self.mean_on_s, self.mean_off_s)
        begun_s = 0.0
        while begun_s < self.duration_s:
            ends = np.cumsum(chance.exponential(means))
            left_s = self.duration_s - begun_s
            kept = min(int(np.searchsorted(ends, left_s)) + 1, PHASES)
            edges = np.concatenate(([0.0], np.minimum(ends[:kept], left_s)))
            profile = Profile(edges_s=edges, start_rps=rates[:kept], end_rps=rates[:kept])
            last = np.nextafter(self.duration_s, 0.0)
            for times in profile.poisson(chance, begun_s):
                yield np.minimum(times, last, out=times)
            begun_s += float(edges[-1])
