"""Random numbers of the compiled plant: splitmix64, so that a seed means the same everywhere.

Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. numpy's
generators lose their state in compiled code, and numba's own differ between versions.
"""

from __future__ import annotations

import math

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from headroom.simulator.compiled.compiling import compiled

Generator = NDArray[np.uint64]
"""The state, [1]; advanced in place."""


@compiled
def uniform(state: Generator) -> float:
    """Return a number in [0, 1)."""
    state[0] = state[0] + uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    z = z ^ (z >> uint64(31))
    return float(z >> uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def below(state: Generator, count: int) -> int:
    """Return a whole number in 0..count-1."""
    return int(uniform(state) * count)


@compiled
def normal(state: Generator) -> float:
    """Return a standard normal number (Box and Muller 1958)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(state)))
    return radius * math.cos(2.0 * math.pi * uniform(state))


@compiled
def lognormal_factor(state: Generator, cv: float) -> float:
    """Return a lognormal number of mean 1 and this coefficient of variation."""
    variance = math.log(1.0 + cv * cv)
    return math.exp(math.sqrt(variance) * normal(state) - variance / 2.0)


@compiled
def gamma_factor(state: Generator, cv: float) -> float:
    """Return a gamma number of mean 1 and this coefficient of variation (Marsaglia, Tsang 2000)."""
    shape = 1.0 / (cv * cv)
    boost = 1.0
    raised = shape
    if shape < 1.0:
        raised = shape + 1.0
        boost = (1.0 - uniform(state)) ** (1.0 / shape)
    d = raised - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(state)
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(1.0 - uniform(state)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v / shape
