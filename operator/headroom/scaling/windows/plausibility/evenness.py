"""Says how evenly a routing spreads requests, and which counts are too low for that. Pure.

Chance: two Poisson counts x and u of the same mean have the likelihood ratio exp(-e) with
e = x ln(x / m) + u ln(u / m), m = (x + u) / 2. With C equally busy connections at N replicas the
variance is 1 + m N / C times as large (`demand/connections.py`), and e is divided by that. Worked:
the others count 40 in 4 s: e is 28 for 0 requests, 5 for 16.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.chance import e_folds_apart
from headroom.scaling.mathematics.flags import any_set
from headroom.scaling.values.policy import Routing

FEW = 0.75
"""Share of the usual requests, below which a replica has few."""
FEWEST = 12.0
"""Requests of another replica, below which a window says nothing."""
LEAST_EXPONENT, LEAST_UNMEASURED = 12.0, 4.0
"""Fewer suffice while the number of connections is not measured, in the first minute or two: a
removal then waits until it is."""
UNMEASURED_CONNECTIONS, MOST_UNEVEN = 30.0, 100
SEEN_LOAD_CONNECTIONS = 100.0
"""Worst spread that chance causes where requests go to the least loaded replica."""


class Evenness(NamedTuple):
    """Evenness of the requests, and the exponent from which on a difference is no chance."""

    connections: float
    """Equally busy connections that would spread them so; infinite without any."""
    least: float


def evenness_of(routing: Routing, connections: int | None) -> Evenness | None:
    """Return how even the routing is; None if a difference says nothing.

    `connections` are None until they are measured.
    """
    if routing in (Routing.RANDOM, Routing.ROUND_ROBIN):
        return Evenness(math.inf, LEAST_EXPONENT)
    if routing in (Routing.LEAST_IN_FLIGHT, Routing.POWER_OF_TWO):
        return Evenness(SEEN_LOAD_CONNECTIONS, LEAST_EXPONENT)
    if routing is Routing.CENTRAL:
        return None
    if connections is None:
        return Evenness(UNMEASURED_CONNECTIONS, LEAST_UNMEASURED)
    if connections >= MOST_UNEVEN:
        return Evenness(float(connections), LEAST_EXPONENT)
    return None


def too_few(counts: Vector, usual: Vector, replicas: int, even: Evenness) -> NDArray[np.bool_]:
    """Return which of these counts are too low compared with the usual ones, [replicas]."""
    few: NDArray[np.bool_] = (counts < FEW * usual) & (usual >= FEWEST)
    if not any_set(few):
        return few
    variance = 1.0 + (counts + usual) / 2.0 * replicas / even.connections
    return few & (e_folds_apart(counts, usual) > even.least * variance)
