"""Latency curves of batching replicas, read off the precomputed tables.

Latency over T = t(B), the time of a full batch, depends on the fixed share t0 / T, B, variation,
N and utilization only. One replica without variation comes from the exact chain; what variation
and routing make of it is a simulated factor (see `headroom.simulator.surface`).
"""

from __future__ import annotations

import base64
import lzma
import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from headroom.scaling import surface_axes as axes
from headroom.scaling import surface_table as table
from headroom.scaling.load_curve import execution_percentile
from headroom.scaling.values import Routing

Array = NDArray[np.float64]

STRETCHES = (1.0, *(1.0 / (1.0 - load) for load in axes.BASE_LOADS))
_COARSE = tuple(1.0 / (1.0 - load) for load in axes.LOADS)
_COARSE_IN_BASE = [axes.BASE_LOADS.index(load) for load in axes.LOADS]
_SLOPE_FROM = axes.BASE_LOADS.index(axes.LOADS[-2])


def fleet(
    share: float, max_batch: int, cv: float, percentile: float, routing: Routing, replicas: int
) -> tuple[Array, float]:
    """Return latency over T at STRETCHES, and its slope beyond, for N replicas that share arrivals.

    Arrivals are Poisson. Above the last fleet of the table the last holds.
    """
    latencies, slopes = _fleets(share, max_batch, cv, percentile, routing)
    few, many, part = between([-(fleet**-1.5) for fleet in axes.FLEETS], -(replicas**-1.5))
    mixed = (1 - part) * latencies[few] + part * latencies[many]
    return mixed, float((1 - part) * slopes[few] + part * slopes[many])


@lru_cache(maxsize=256)
def _fleets(
    share: float, max_batch: int, cv: float, percentile: float, routing: Routing
) -> tuple[Array, Array]:
    """Return latencies [fleets, stretches] and slopes [fleets].

    Latency never falls with load, and neither rises with N.
    """
    tail = np.array(_percentile_weights(percentile))
    base = _base(share, max_batch)
    change = _mix(
        _changes()[_routing(routing)],
        _shares(axes.SHARES, share, max_batch),
        between([-1 / size for size in axes.BATCHES], -1 / max_batch),
    )  # [fleets, cvs, loads, percentiles]
    change = np.tensordot(change, np.array(axes.parabola(cv)), axes=(1, 0))
    loaded = (base[_COARSE_IN_BASE] + change) @ tail @ _FINE.T  # [fleets, base loads]
    if cv == 0:
        loaded[0] = base @ tail
    idle = (share + (1 - share) / max_batch) * execution_percentile(cv, percentile)
    latencies = np.insert(np.maximum(loaded, idle), 0, idle, axis=1)
    latencies = np.minimum.accumulate(np.maximum.accumulate(latencies, axis=1), axis=0)
    measured = (latencies[:, -1] - latencies[:, _SLOPE_FROM + 1]) / (
        STRETCHES[-1] - STRETCHES[_SLOPE_FROM + 1]
    )
    slopes = np.maximum(measured, _least_slopes(max_batch, cv, percentile, routing))
    return latencies, np.minimum.accumulate(slopes)


def _least_slopes(max_batch: int, cv: float, percentile: float, routing: Routing) -> Array:
    """Return the slope of heavy traffic, [fleets]: -ln(1 - p) (Ca2 / B + cv^2) / 2 over the pool.

    Kingman 1961. Round robin evens out the arrivals and pools nothing; the others pool.
    """
    fleets = np.array(axes.FLEETS, dtype=np.float64)
    if routing is Routing.RANDOM:
        spread = np.full(len(fleets), 1 / max_batch + cv * cv)
    elif routing is Routing.ROUND_ROBIN:
        spread = 1 / (fleets * max_batch) + cv * cv
    else:
        spread = (1 / max_batch + cv * cv) / fleets
    result: Array = -math.log(1 - percentile) * spread / 2
    return result


def _base(share: float, max_batch: int) -> Array:
    """Return the percentiles of one replica without variation, [base loads, percentiles]."""
    sizes = between([-1 / size for size in axes.BASE_BATCHES], -1 / max_batch)
    return _mix(stored_table("BASE"), _shares(axes.BASE_SHARES, share, max_batch), sizes)


@lru_cache(maxsize=1)
def _changes() -> Array:
    """Return what variation and routing add to one replica's latency without variation.

    [routings, shares, batches, fleets, cvs, loads, percentiles]
    """
    changes = np.moveaxis(stored_table("RATIO"), 1, 3) - 1
    for (i, share), (j, batch) in product(enumerate(axes.SHARES), enumerate(axes.BATCHES)):
        changes[:, i, j] *= _base(share, batch)[_COARSE_IN_BASE]
    return np.ascontiguousarray(changes)


@lru_cache(maxsize=2)
def stored_table(name: str) -> Array:
    """Return a table's numbers.

    BASE [shares, batches, loads, percentiles], RATIO [routings, fleets, shares, batches, cvs,
    loads, percentiles].
    """
    packed = lzma.decompress(base64.b64decode(getattr(table, name)))
    planes = np.frombuffer(packed, dtype=np.uint8).reshape(2, -1)
    steps = np.ascontiguousarray(planes.T).view("<i2").reshape(getattr(table, name + "_SHAPE"))
    values: Array = np.exp(steps * axes.STEP)
    return values


def _routing(routing: Routing) -> int:
    return axes.ROUTINGS.index(routing) if routing in axes.ROUTINGS else 0


def _shares(nodes: Sequence[float], share: float, max_batch: int) -> tuple[int, int, float]:
    """Return the neighbours of a fixed share by the logarithm of the idle time over T."""
    if max_batch == 1:
        return 0, 0, 0.0
    idle = [math.log(node + (1 - node) / max_batch) for node in nodes]
    return between(idle, math.log(share + (1 - share) / max_batch))


def between(nodes: Sequence[float], value: float) -> tuple[int, int, float]:
    """Return the two neighbours of a value and the share of the second; the ends hold beyond."""
    above = min(max(bisect_right(nodes, value), 1), len(nodes) - 1)
    part = (value - nodes[above - 1]) / (nodes[above] - nodes[above - 1])
    return above - 1, above, min(1.0, max(0.0, part))


def _at(nodes: Sequence[float], value: float) -> list[float]:
    """Return the weights of all nodes at a value."""
    low, high, part = between(nodes, value)
    weights = [0.0] * len(nodes)
    weights[low], weights[high] = 1 - part, part
    return weights


def _mix(values: Array, first: tuple[int, int, float], second: tuple[int, int, float]) -> Array:
    """Interpolate over the first two axes."""
    i, j, part = first
    rows = (1 - part) * values[i] + part * values[j]
    i, j, part = second
    result: Array = (1 - part) * rows[i] + part * rows[j]
    return result


def _percentile_weights(percentile: float) -> list[float]:
    """Return the weights of axes.PERCENTILES: latency is linear in -ln(1 - p).

    So it is where the tail is exponential. Below the first the first holds, which is too high;
    above the last the line goes on.
    """
    nodes = [-math.log(1 - known) for known in axes.PERCENTILES]
    value = -math.log(1 - percentile)
    if value <= nodes[-1]:
        return _at(nodes, value)
    part = (value - nodes[-1]) / (nodes[-1] - nodes[-2])
    return [*[0.0] * (len(nodes) - 2), -part, 1 + part]


_FINE = np.array([_at(_COARSE, stretch) for stretch in STRETCHES[1:]])
"""Takes the ratio's loads to the base's, [base loads, loads]."""
