"""Latency curves of batching replicas, read from the precomputed tables.

Latency over T = t(B), the time of a full batch, depends on t0 / T, B, variation, N, routing and
utilization only. The tables hold the utilization at each level of latency (`latency_table_axes`),
from exact chains and simulation (`latency_tables.surface`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.latency import latency_table_axes as axes
from headroom.scaling.latency.load_curve import LoadCurve, execution_percentile
from headroom.scaling.values.policy import Routing

Array = NDArray[np.float64]

FILE = "latency_tables.npz"
"""Written by `python -m latency_tables.surface`."""

_BATCHES = [-1 / size for size in axes.BATCHES]
_DEPTHS = [math.log(-math.log(1 - known)) for known in axes.PERCENTILES]
_APART = 1e-9 * np.arange(axes.LEVELS)
"""Keeps stretches apart where latency jumps."""


def fleet(
    share: float, max_batch: int, cv: float, percentile: float, routing: Routing, replicas: int
) -> LoadCurve:
    """Return latency over T against load for N replicas that share Poisson arrivals.

    Fleets larger than the largest of the table use its curve.
    """
    routing = routing if routing in axes.FLEETS else Routing.RANDOM
    latencies, logits = _fleets(share, max_batch, cv, percentile, routing)
    fleets = _sizes(routing)
    counted = min(replicas, fleets[-1])
    if len(fleets) == 1:
        logit, counted = logits[0], 1
    else:
        few, many, part = between([math.log(size) for size in fleets], math.log(counted))
        logit = (1 - part) * logits[few] + part * logits[many]
    stretches = 1 + np.exp(logit) + _APART
    heavy = axes.heavy_traffic(routing, counted, max_batch, cv)
    return LoadCurve(
        stretches=(1.0, *stretches.tolist()),
        latencies=latencies,
        slope=-math.log(1 - percentile) * heavy,
    )


@lru_cache(maxsize=256)
def _fleets(
    share: float, max_batch: int, cv: float, percentile: float, routing: Routing
) -> tuple[tuple[float, ...], Array]:
    """Return the levels of latency over T, idle first, and logits [fleets, levels].

    Utilization never falls from level to level, nor with N.
    """
    idle = share + (1 - share) / max_batch
    i, _, shares = between(axes.EXPONENTS, axes.exponent(idle, max_batch))
    j, _, batches = between(_BATCHES, -1 / max_batch)
    m, variations = axes.variation(cv)
    q, depths = _percentiles(percentile)
    last = m + len(variations)
    block = stored_table(routing)[:, i : i + 2, j : j + 2, m:last, q : q + 2]
    weights = np.multiply.outer(
        np.multiply.outer([1 - shares, shares], [1 - batches, batches]),
        np.multiply.outer(variations, depths),
    )
    logits = np.tensordot(block, weights, axes=((1, 2, 3, 4), (0, 1, 2, 3)))
    logits = np.maximum.accumulate(np.maximum.accumulate(logits, axis=1), axis=0)
    factor = execution_percentile(cv, percentile)
    return (idle * factor, *axes.levels(idle, factor).tolist()), logits


def _percentiles(percentile: float) -> tuple[int, list[float]]:
    """Return the first of two neighbours in axes.PERCENTILES and the weights of both.

    Below the first its curve is used, which is too high; above the last the line continues.
    """
    depth = math.log(-math.log(1 - percentile))
    low = min(max(bisect_right(_DEPTHS, depth) - 1, 0), len(_DEPTHS) - 2)
    part = max(0.0, (depth - _DEPTHS[low]) / (_DEPTHS[low + 1] - _DEPTHS[low]))
    return low, [1 - part, part]


def _sizes(routing: Routing) -> tuple[int, ...]:
    return (1,) if routing is Routing.RANDOM else (1, *axes.FLEETS[routing])


@lru_cache(maxsize=len(axes.FLEETS))
def stored_table(routing: Routing) -> NDArray[np.float32]:
    """Return logits of utilization, the fleet of one first.

    [fleets, exponents, batches, cvs, percentiles, levels]
    """
    with files(__package__).joinpath(FILE).open("rb") as file, np.load(file) as stored:
        low, high = stored[routing.name].astype(np.int16)
    signed = low | (high << 8)
    steps = (signed >> 1) ^ -(signed & 1)
    nodes = (axes.EXPONENTS, axes.BATCHES, axes.CVS, axes.PERCENTILES)
    steps = steps.reshape(-1, *map(len, nodes), axes.LEVELS)
    steps = steps.cumsum(axis=2, dtype=np.int16).cumsum(axis=-1, dtype=np.int16)
    logits: NDArray[np.float32] = np.float32(axes.STEP) * steps
    if routing is Routing.RANDOM:
        return logits
    return np.concatenate((stored_table(Routing.RANDOM), logits))


def between(nodes: Sequence[float], value: float) -> tuple[int, int, float]:
    """Return the two neighbours of a value and the share of the second; clamped to the ends."""
    above = min(max(bisect_right(nodes, value), 1), len(nodes) - 1)
    part = (value - nodes[above - 1]) / (nodes[above] - nodes[above - 1])
    return above - 1, above, min(1.0, max(0.0, part))
