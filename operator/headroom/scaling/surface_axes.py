"""The axes of the tail-latency tables: where latency was computed, and how it is interpolated.

Latency is taken over the time of a full batch, T = t(B). The fixed share is t0 / T.
Between two shares the idle time's logarithm counts: a small t0 matters in proportion to a.
"""

from __future__ import annotations

from headroom.scaling.values import Routing

PERCENTILES = (0.5, 0.9, 0.95, 0.99)
ROUTINGS = (
    Routing.LEAST_IN_FLIGHT,
    Routing.POWER_OF_TWO,
    Routing.ROUND_ROBIN,
    Routing.CENTRAL,
)
"""Of RANDOM each replica sees its own Poisson stream: the fleet of one."""
FLEETS = (1, 2, 4, 12, 40)
"""Replicas that share the arrivals; between two, latency is linear in N^-1.5."""
SHARES = (0.0, 0.03, 0.1, 1 / 3, 2 / 3, 1.0)
BATCHES = (1, 2, 4, 8, 16, 64)
"""Largest batches; between two, latency is linear in 1 / B. Above the last it hardly changes."""
CVS = (0.0, 0.25, 0.5, 1.0, 2.0)
"""Coefficients of variation; a parabola goes through three of them."""
LOADS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.87, 0.92, 0.96)
"""Utilizations. Latency is linear in 1 / (1 - utilization) between them and above the last."""

BASE_SHARES = (0.0, 0.015, 0.03, *(step / 16 for step in range(1, 17)))
BASE_BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
BASE_LOADS = (
    *(0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    *(0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.84, 0.87, 0.9, 0.92, 0.94, 0.96),
)
STEP = 0.004
"""Of the logarithm, in the stored tables."""


def parabola(cv: float) -> list[float]:
    """Return the weight of each of CVS at this cv, of a parabola through the three around it.

    Variation enters the wait with its square and the percentile of an execution linearly, so a
    parabola follows both.
    """
    first = sum(cv > node for node in CVS[2:-1])
    a, b, c = CVS[first : first + 3]
    weights = [0.0] * len(CVS)
    weights[first] = (cv - b) * (cv - c) / ((a - b) * (a - c))
    weights[first + 1] = (cv - a) * (cv - c) / ((b - a) * (b - c))
    weights[first + 2] = (cv - a) * (cv - b) / ((c - a) * (c - b))
    return weights
