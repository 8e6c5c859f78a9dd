"""How many replicas known arrivals need: the arithmetic of static sizes and of the bounds.

    need = smallest N with rate / N <= limit
    limit = min(capacity, ceiling x full-batch throughput)

`capacity` is the highest rate of one replica at which the promised percentile holds, so neither the
promise nor the utilization ceiling is broken in a steady state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.autoscaler import Truth


def limit_rps(truth: Truth, ceiling: float) -> float:
    """Return the highest rate that one replica may be given."""
    return min(truth.capacity_rps, ceiling * truth.spec.server.full_rps)


def window_rates(arrivals_per_s: NDArray[np.float64], window_s: int) -> NDArray[np.float64]:
    """Return the mean rate of each aligned window, [windows]; the last may be shorter.

    Worked: (2, 4, 6) in windows of 2 s: 3 and 6 requests per second.
    """
    starts = np.arange(0, len(arrivals_per_s), window_s)
    if not len(starts):
        return np.zeros(0)
    seconds = np.minimum(starts + window_s, len(arrivals_per_s)) - starts
    rates: NDArray[np.float64] = np.add.reduceat(arrivals_per_s, starts) / seconds
    return rates


def needed(rates: NDArray[np.float64], limit: float) -> NDArray[np.int64]:
    """Return the replicas that each rate needs, same shape; at least 1 where there is traffic."""
    if not limit > 0:
        raise ValueError(f"one replica must carry some traffic, limit > 0, received {limit:g} rps")
    return np.ceil(rates / limit - 1e-9).astype(np.int64)
