"""Latency curves of replicas with several slots, each of which executes independently.

The slots that a request may use form a pool with one queue: those of its replica, or those of all
replicas if the router finds free ones. Without batching the pool is Allen-Cunneen's (within 5 % of
simulation up to cv 1, 15 % at cv 2); with batches it counts as that many replicas behind a central
queue.

Routers that look at two replicas, or only at the number of requests, are worse than one queue.
Measured at one slot this is a factor f on latency; at c slots about f^(1/c) of it remains. Round
robin evens out the arrivals at a replica, Ca2 = 1 / N, and pools nothing.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.latency import latency_table_axes as axes
from headroom.scaling.latency import latency_tables, many_servers
from headroom.scaling.latency.load_curve import LoadCurve
from headroom.scaling.values.policy import Routing

Array = NDArray[np.float64]

LOADS = (
    *(0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    *(0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.84, 0.87, 0.9, 0.92, 0.94, 0.96),
)
STRETCHES = tuple(1 / (1 - load) for load in LOADS)
LARGEST_FLEET = axes.FLEETS[Routing.LEAST_IN_FLIGHT][-1]
POOLS = (32, 48, 64, 96, 128, 256, 512, 1024)
"""Above the first, Allen-Cunneen is solved for these sizes only; between two, latency is linear in
1 / slots."""


def fleet(
    share: float,
    max_batch: int,
    slots: int,
    cv: float,
    percentile: float,
    routing: Routing,
    replicas: int,
) -> LoadCurve:
    """Return latency over the time of a full batch against load."""
    pooled = slots if routing is Routing.ROUND_ROBIN else slots * replicas
    latencies, slope = _pool(share, max_batch, pooled, cv, percentile)
    if routing in (Routing.LEAST_IN_FLIGHT, Routing.POWER_OF_TWO):
        simulated = min(replicas, LARGEST_FLEET)
        known, _ = _pool(share, max_batch, slots * simulated, cv, percentile)
        routed = _routed(share, max_batch, slots, cv, percentile, routing, simulated)
        latencies = routed * np.minimum(1.0, latencies / known)
    elif routing is Routing.ROUND_ROBIN:
        even = _evenness(slots, cv, percentile)
        latencies = latencies * (even + (1 - even) / replicas)
    latencies = np.maximum.accumulate(latencies)
    return LoadCurve(stretches=STRETCHES, latencies=tuple(latencies.tolist()), slope=slope)


@lru_cache(maxsize=1024)
def _routed(
    share: float,
    max_batch: int,
    slots: int,
    cv: float,
    percentile: float,
    routing: Routing,
    replicas: int,
) -> Array:
    """Return the pool's curve times f^(1/c), never above that of one replica less."""
    pool, _ = _pool(share, max_batch, slots * replicas, cv, percentile)
    if replicas == 1:
        return pool
    routed, _ = _batching(share, max_batch, cv, percentile, routing, replicas)
    queued, _ = _pool(share, max_batch, replicas, cv, percentile)
    fewer = _routed(share, max_batch, slots, cv, percentile, routing, replicas - 1)
    return np.minimum(pool * np.maximum(1.0, routed / queued) ** (1 / slots), fewer)


def _pool(
    share: float, max_batch: int, servers: int, cv: float, percentile: float
) -> tuple[Array, float]:
    """Return the curve of this many slots with one queue."""
    if max_batch > 1:
        return _batching(share, max_batch, cv, percentile, Routing.CENTRAL, servers)
    slope = -math.log(1 - percentile) * (1 + cv * cv) / (2 * servers)
    if servers <= POOLS[0]:
        return _allen_cunneen(servers, cv, percentile), slope
    few, many, part = latency_tables.between([-1 / pool for pool in POOLS], -1 / servers)
    first = _allen_cunneen(POOLS[few], cv, percentile)
    second = _allen_cunneen(POOLS[many], cv, percentile)
    return (1 - part) * first + part * second, slope


def _batching(
    share: float, max_batch: int, cv: float, percentile: float, routing: Routing, servers: int
) -> tuple[Array, float]:
    """Return the curve of this many replicas with one execution at a time."""
    curve = latency_tables.fleet(share, max_batch, cv, percentile, routing, servers)
    return np.array([curve.latency(load) for load in LOADS]), curve.slope


@lru_cache(maxsize=256)
def _evenness(slots: int, cv: float, percentile: float) -> Array:
    """Return latency with perfectly even arrivals over latency with Poisson arrivals."""
    even = _allen_cunneen(slots, cv, percentile, 0.0)
    return np.minimum(1.0, even / _allen_cunneen(slots, cv, percentile))


@lru_cache(maxsize=1024)
def _allen_cunneen(servers: int, cv: float, percentile: float, arrival_cv2: float = 1.0) -> Array:
    latencies = many_servers.latencies(servers, cv, percentile, LOADS, arrival_cv2)
    return np.maximum.accumulate(latencies)
