"""The axes of the tail-latency tables: which points were computed, and how to interpolate.

Latency is measured in the time of a full batch, T = t(B). The tables hold the highest utilization
at which a percentile of latency stays within a level. The curves of different services are similar
in that direction: latency stays at the idle time up to a load that depends on N, t0 / a and B, and
rises steeply from there.
"""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.policy import Routing

PERCENTILES = (0.5, 0.9, 0.95, 0.99)
"""Between two, and above the last, the logit is linear in ln(-ln(1 - p))."""
FLEETS = {
    Routing.RANDOM: (1,),
    Routing.LEAST_IN_FLIGHT: (2, 4, 8, 16, 40),
    Routing.POWER_OF_TWO: (4, 40),
    Routing.ROUND_ROBIN: (4, 40),
    Routing.CENTRAL: (4, 40),
}
"""Replicas that share the arrivals; between two, the logit is linear in ln N. With RANDOM each
replica sees its own Poisson stream: the fleet of one, which all routings share."""
EXPONENTS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Idle times: t(1) / T = B^-y. At 0 a batch costs no more than one request, at 1 B times that.
Latency jumps at two executions, which two neighbours have at different levels: where a batch costs
hardly more than a request, and loads near that jump are allowed, the neighbours are close."""
BATCHES = (1, 2, 3, 4, 6, 8, 14, 28, 64)
"""Largest batches; between two, the logit is linear in 1 / B."""
CVS = (0.0, 0.1, 0.3, 0.6, 1.0, 2.0)
"""Coefficients of variation, interpolated by parabolas through three of them."""
_BELOW = (
    *(0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.26, 0.33),
    *(0.4, 0.48, 0.56, 0.64, 0.72, 0.8, 0.85, 0.9, 0.95, 1.0),
)
_ABOVE = (1.125, 1.25, *(2 ** (step / 2) for step in range(1, 10)))
LEVELS = len(_BELOW) + len(_ABOVE)
STEP = 0.013
"""Resolution of a logit in the stored tables."""


def levels(idle: float, factor: float) -> NDArray[np.float64]:
    """Return the levels of latency over T, [LEVELS].

    From just above the idle time to twice a full batch evenly in the logarithm, then by sqrt(2).
    `factor` is the percentile of an execution over its mean, `idle` is t(1) / T.
    """
    below = idle * (2 / idle) ** np.array(_BELOW)
    result: NDArray[np.float64] = factor * np.concatenate((below, 2 * np.array(_ABOVE)))
    return result


def heavy_traffic(routing: Routing, replicas: int, max_batch: int, cv: float) -> float:
    """Return the mean of the wait's exponential tail, times 1 - utilization, over T.

    (Ca2 / B + cv^2) / 2 over the pooled replicas (Kingman 1961). Round robin evens out the arrivals
    and pools nothing; RANDOM does neither.
    """
    if routing is Routing.RANDOM:
        return (1 / max_batch + cv * cv) / 2
    if routing is Routing.ROUND_ROBIN:
        return (1 / (replicas * max_batch) + cv * cv) / 2
    return (1 / max_batch + cv * cv) / (2 * replicas)


def exponent(idle: float, max_batch: int) -> float:
    """Return y of t(1) / T = B^-y."""
    return -math.log(idle) / math.log(max_batch) if max_batch > 1 else 0.0


def variation(cv: float) -> tuple[int, list[float]]:
    """Return the first node of CVS that has weight at this cv, and the weights from it on.

    The mean of two parabolas: through the interval and the node below it, and the node above it.
    """
    place = min(bisect_right(CVS, cv), len(CVS) - 1) - 1
    first, last = max(place - 1, 0), min(place, len(CVS) - 3)
    weights = [0.0] * (last + 3 - first)
    for start in (first, last):
        for offset, weight in enumerate(_parabola(CVS[start : start + 3], cv)):
            weights[start - first + offset] += weight / 2
    return first, weights


def _parabola(nodes: tuple[float, ...], value: float) -> list[float]:
    a, b, c = nodes
    return [
        (value - b) * (value - c) / ((a - b) * (a - c)),
        (value - a) * (value - c) / ((b - a) * (b - c)),
        (value - a) * (value - b) / ((c - a) * (c - b)),
    ]
