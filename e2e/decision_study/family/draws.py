"""Random numbers of one member: an independent stream per aspect, and the usual draws. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from headroom.simulator.arrivals.streams import generator

_SEED = 2611
"""Seed of the whole family; another number gives another family."""
Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class Draws:
    """The random numbers of one aspect of one member."""

    chance: np.random.Generator

    @classmethod
    def of(cls, member: str, aspect: str) -> Draws:
        """Return the stream of an aspect, which is independent of all others."""
        return cls(generator(_SEED, f"{member}/{aspect}"))

    def between(self, low: float, high: float) -> float:
        """Return a number that is uniform between two."""
        return float(self.chance.uniform(low, high))

    def scale(self, low: float, high: float) -> float:
        """Return a number whose logarithm is uniform: as often in 1 to 10 as in 10 to 100."""
        return math.exp(self.between(math.log(low), math.log(high)))

    def one_of(self, choices: Sequence[Choice]) -> Choice:
        """Return one of several, each equally often."""
        return choices[int(self.chance.integers(len(choices)))]

    def exponential(self, mean: float) -> float:
        """Return an exponential number."""
        return float(self.chance.exponential(mean))

    def factor(self, sigma: float) -> float:
        """Return a lognormal factor of median 1."""
        return math.exp(sigma * float(self.chance.standard_normal()))
