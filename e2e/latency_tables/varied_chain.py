"""The chain of one batching replica whose executions vary: latencies under Poisson arrivals.

M/G[1,B]/1 with lognormal executions. The queue at the end of a batch is a Markov chain; its
stationary distribution is computed by elimination without subtraction (Grassmann, Taksar, Heyman
1985). Latencies are then drawn independently from it, so that their error does not grow with the
load as in a simulation. Without variation, `latency_tables.batch_chain` needs no draws.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.rng import Generator, lognormal_factor, normal, uniform

Floats = NDArray[np.float64]

MOST_STATES = 5000
TAIL = 13.0
"""States reach to exp(-13) of the queue's exponential tail."""
NODES = 40
LEAST_CHANCE = 1e-8
"""Nodes of the Gauss-Hermite quadrature that are rarer than this are left out."""


def latencies(
    fixed_share: float, max_batch: int, cv: float, utilization: float, draws: int, seed: int
) -> Floats:
    """Return drawn latencies over the time of a full batch, [draws], in no order."""
    rate = utilization * max_batch
    sizes = np.arange(max_batch + 1, dtype=np.float64)
    times: Floats = fixed_share + (1 - fixed_share) / max_batch * sizes
    left = waiting_distribution(rate, times, cv)
    begun = left[: max_batch + 1].copy()
    begun[1] += left[0]
    begun[max_batch] += left[max_batch + 1 :].sum()
    begun[0] = 0.0
    arrived = np.concatenate(([left[0]], (begun * rate * times)[1:]))
    chosen = np.searchsorted(
        np.cumsum(arrived) / arrived.sum(), (np.arange(draws) + 0.5) / draws
    ).astype(np.int64)
    rest = left[max_batch:].copy()
    if max_batch == 1:
        rest[0] += left[0]
    cumulated = np.cumsum(rest) / max(rest.sum(), float(np.finfo(float).tiny))
    result = np.empty(draws)
    _draw(np.array([seed], dtype=np.uint64), chosen, cumulated, times, cv, rate, result)
    return result


def waiting_distribution(rate: float, times: Floats, cv: float) -> Floats:
    """Return the stationary distribution of requests waiting when a batch ends, [states]."""
    max_batch = len(times) - 1
    rho = rate / max_batch * times[-1]
    decay = rho * (1 + max_batch * cv * cv) / (2 * (1 - rho))
    states = min(MOST_STATES, 4 * max_batch + 20 + int(TAIL * decay))
    factors, chances = _factors(cv)
    longest = rate * times[-1] * factors[-1]
    room = min(states, int(longest + 8 * math.sqrt(longest)) + 12)
    counts = np.arange(room)
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(counts[1:]))))
    means = rate * np.outer(times[1:], factors)[:, :, np.newaxis]
    logs = counts * np.log(means) - means - log_factorial
    came = np.einsum("f,tfc->tc", chances, np.exp(logs))
    came[:, -1] += np.maximum(0.0, 1.0 - came.sum(axis=1))
    band = np.zeros((states, max_batch + room))
    for waiting in range(states):
        served = min(max(waiting, 1), max_batch) - 1
        rest = max(waiting - max_batch, 0)
        first = rest - waiting + max_batch
        kept = min(room, states - rest)
        band[waiting, first : first + kept] = came[served, :kept]
        band[waiting, first + kept - 1] += came[served, kept:].sum()
    left = np.zeros(states)
    _eliminate(band, max_batch, left)
    result: Floats = left / left.sum()
    return result


def _factors(cv: float) -> tuple[Floats, Floats]:
    """Return lognormal factors of mean 1 and their chances, by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    chances = weights / weights.sum()
    kept = chances > LEAST_CHANCE
    variance = math.log1p(cv * cv)
    factors: Floats = np.exp(math.sqrt(variance) * nodes[kept] - variance / 2)
    return factors, chances[kept] / chances[kept].sum()


@compiled
def _eliminate(band: Floats, max_batch: int, left: Floats) -> None:
    """Write the stationary measure of a chain; band[i, j - i + max_batch] is from i to j."""
    states, width = band.shape
    for gone in range(states - 1, 0, -1):
        lowest = max(0, gone - max_batch)
        leaving = 0.0
        for to in range(lowest, gone):
            leaving += band[gone, to - gone + max_batch]
        for origin in range(max(0, gone - width + max_batch + 1), gone):
            share = band[origin, gone - origin + max_batch] / leaving
            band[origin, gone - origin + max_batch] = share
            if share > 0.0:
                for to in range(max(lowest, origin - max_batch), gone):
                    band[origin, to - origin + max_batch] += (
                        share * band[gone, to - gone + max_batch]
                    )
    left[0] = 1.0
    for state in range(1, states):
        total = 0.0
        for origin in range(max(0, state - width + max_batch + 1), state):
            total += left[origin] * band[origin, state - origin + max_batch]
        left[state] = total


@compiled
def _poisson(random: Generator, mean: float, most: int) -> int:
    """Return a Poisson number, at most `most`: how many exponential gaps fit."""
    count = 0
    passed = -math.log(1.0 - uniform(random))
    while passed < mean and count < most:
        count += 1
        passed -= math.log(1.0 - uniform(random))
    return count


@compiled
def _place(cumulated: Floats, level: float) -> int:
    low, high = 0, len(cumulated) - 1
    while low < high:
        middle = (low + high) // 2
        if cumulated[middle] < level:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _draw(
    random: Generator,
    chosen: NDArray[np.int64],
    cumulated: Floats,
    times: Floats,
    cv: float,
    rate: float,
    result: Floats,
) -> None:
    """Draw latencies of arrivals during a batch of each chosen size; 0: at an idle replica.

    An arrival sees a batch with the chance of its length, at a uniform instant of it. It waits for
    the rest, for the full batches ahead, and for its own, with all arrivals until then.
    """
    max_batch = len(times) - 1
    sigma = math.sqrt(math.log(1.0 + cv * cv))
    for number in range(len(chosen)):
        size = chosen[number]
        wait = 0.0
        own = 1
        if size > 0:
            seen = times[size] * math.exp(sigma * normal(random) + sigma * sigma / 2)
            elapsed = seen * uniform(random)
            ahead = _poisson(random, rate * elapsed, 1 << 30)
            if size == max_batch:
                ahead += _place(cumulated, uniform(random))
            wait = seen - elapsed
            for _ in range(ahead // max_batch):
                wait += times[max_batch] * lognormal_factor(random, cv)
            own = ahead % max_batch + 1
            own += _poisson(random, rate * wait, max_batch - own)
        result[number] = wait + times[own] * lognormal_factor(random, cv)
