"""Measures the capacity of one replica on the plant itself: the perfect profile of a server."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from headroom.simulator import kernel
from headroom.simulator.plant import Clients, ServiceSpec
from headroom.simulator.plant_state import Tally, allocate, with_more_nodes, with_rows

_REQUESTS = 100_000
_STEPS = 9
"""Bisections: the capacity is known to 1/512 of the full throughput."""


def capacity_rps(spec: ServiceSpec, replicas: int) -> float:
    """Return the highest Poisson rate per replica at which the percentile is within the target.

    Measured with this many replicas behind the service's routing, and clients without timeouts.
    """
    plain = replace(spec, name="", clients=Clients(), advertised=None, initial_replicas=None)
    return _measured(plain, replicas)


@lru_cache(maxsize=256)
def _measured(spec: ServiceSpec, replicas: int) -> float:
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        kept = _attainment(spec, replicas, middle) >= spec.policy.latency_percentile
        low, high = (middle, high) if kept else (low, middle)
    return low * spec.server.full_rps


def _attainment(spec: ServiceSpec, replicas: int, utilization: float) -> float:
    rate_rps = utilization * replicas * spec.server.full_rps
    gaps_s = np.random.Generator(np.random.PCG64(1)).exponential(1 / rate_rps, _REQUESTS)
    times_s = np.cumsum(gaps_s)
    tables = with_rows(allocate(spec, 1, float(times_s[-1])), replicas)
    for row in range(replicas):
        kernel.admit(tables, row, 0.0)
    index = 0
    while True:
        index = kernel.advance(tables, times_s, index, np.inf)
        if index == len(times_s):
            return float(tables.tally[Tally.WITHIN]) / _REQUESTS
        tables = with_more_nodes(tables)
