"""Latency of many parallel slots: Erlang-C, Allen-Cunneen, and the execution.

A request waits with probability C(c, A) (Erlang 1917), then exponentially with the mean that Allen
and Cunneen scale by (Ca2 + Cs2) / 2 (Allen 1990, section 5.6.2); its latency is that wait plus a
lognormal execution. Checked numbers: M/M/10 at utilization 0.85 waits 1.57 executions at the 95th
percentile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.latency.load_curve import execution_percentile

STEPS = 64
DEEPEST = 9.0
"""Executions are evaluated at STEPS levels, evenly in -ln(1 - level) up to DEEPEST: 1 in 8000."""
HALVINGS = 22
_LEAST_CV2 = 1e-6
"""Keeps the mean wait above zero if neither arrivals nor executions vary."""


def erlang_c(servers: int, offered: float) -> float:
    """Return the probability that all servers are busy; `offered` (A) is arrivals x mean time.

    By the recursion of Erlang's loss formula. Worked: c = 2, A = 1: B = 0.2, C = 1/3.
    """
    if offered >= servers:
        return 1.0
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return servers * blocked / (servers - offered * (1 - blocked))


def latencies(
    servers: int, cv: float, percentile: float, loads: Sequence[float], arrival_cv2: float = 1.0
) -> NDArray[np.float64]:
    """Return the percentile of latency over the mean execution at each utilization, [loads].

    P(latency > z) = E[P(wait > z - execution)], solved for z by halving.
    """
    depth = np.linspace(0.0, DEEPEST, STEPS + 1)
    weights = -np.diff(np.exp(-depth), append=0.0)
    levels = 1 - np.exp(-(depth + np.append(depth[1:], DEEPEST + 1)) / 2)
    times = np.array([execution_percentile(cv, float(level)) for level in levels])
    times /= float(times @ weights)
    waiting = np.array([erlang_c(servers, servers * load) for load in loads])
    scale = (arrival_cv2 + cv * cv + _LEAST_CV2) / (2 * servers * (1 - np.asarray(loads)))
    low = np.zeros(len(loads))
    high = float(times[-1]) - math.log(1 - percentile) * scale
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        spare = middle[:, np.newaxis] - times
        later = waiting[:, np.newaxis] * np.exp(-np.maximum(spare, 0) / scale[:, np.newaxis])
        above = np.where(spare < 0, 1.0, later) @ weights > 1 - percentile
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high
