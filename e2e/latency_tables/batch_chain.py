"""The exact chain of one batching replica: percentiles of latency under Poisson arrivals.

One replica serves Poisson arrivals in batches of at most B with cost t(b) = t0 + a b and takes the
waiting ones as soon as it is free (M/D[b,B]/1). The queue at the end of a batch is a Markov chain;
its stationary distribution gives the latency of every arrival. Compare Inoue 2021 (arXiv
1912.06322), whose closed form bounds the mean without a batch cap. Without batching this is M/D/1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

INSTANTS = 24
"""Arrival instants per batch at which latency is evaluated."""


def percentiles(
    fixed_share: float, max_batch: int, utilization: float, wanted: Sequence[float]
) -> Vector:
    """Return the wanted percentiles of latency over the time of a full batch, [wanted]."""
    latency, weight = arrivals(fixed_share, max_batch, utilization)
    order = np.argsort(latency)
    cumulated = np.cumsum(weight[order])
    index = np.searchsorted(cumulated, np.asarray(wanted) * cumulated[-1])
    result: Vector = latency[order][np.minimum(index, len(order) - 1)]
    return result


def mean(fixed_share: float, max_batch: int, utilization: float) -> float:
    """Return the mean latency over the time of a full batch."""
    latency, weight = arrivals(fixed_share, max_batch, utilization)
    return float(latency @ weight / weight.sum())


def arrivals(fixed_share: float, max_batch: int, utilization: float) -> tuple[Vector, Vector]:
    """Return latencies over the time of a full batch and how many per batch take them, both [n]."""
    sizes = np.arange(max_batch + 1, dtype=np.float64)
    times: Vector = fixed_share + (1 - fixed_share) / max_batch * sizes
    rate = utilization * max_batch
    return _arrivals(_waiting_distribution(rate, times), rate, times)


def _poisson(means: Vector, size: int) -> Vector:
    """Return probabilities of 0..size-1 events for each mean, the rest on the last, [n, size]."""
    counts = np.arange(size)
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(counts[1:]))))
    means = means[:, np.newaxis]
    p: Vector = np.exp(counts * np.log(means) - means - log_factorial)
    p[:, -1] += np.maximum(0.0, 1.0 - p.sum(axis=1))
    return p


def _waiting_distribution(rate: float, times: Vector) -> Vector:
    """Return the stationary distribution of requests waiting when a batch ends, [states].

    The tail falls by about exp(-2 (1 - rho) / rho) per request (diffusion limit), so that the
    truncated states have a probability below 1e-8.
    """
    max_batch = len(times) - 1
    rho = rate / max_batch
    states = 3 * max_batch + int(10 * rho / (1 - rho)) + 20
    served = np.minimum(np.maximum(np.arange(max_batch + 1), 1), max_batch)
    transition = np.zeros((states, states))
    transition[: max_batch + 1] = _poisson(rate * times[served], states)
    full = transition[max_batch]
    for waiting in range(max_batch + 1, states):
        rest = waiting - max_batch
        transition[waiting, rest:] = full[: states - rest]
        transition[waiting, -1] += full[states - rest :].sum()
    system = transition.T - np.eye(states)
    system[-1] = 1.0
    right = np.zeros(states)
    right[-1] = 1.0
    stationary: Vector = np.maximum(np.linalg.solve(system, right), 0.0)
    return stationary


_POISSON_POINTS = ((-math.sqrt(3), 1 / 6), (0.0, 2 / 3), (math.sqrt(3), 1 / 6))
"""Three points, in standard deviations, with the weights of Gauss-Hermite quadrature."""


def _arrivals(left: Vector, rate: float, times: Vector) -> tuple[Vector, Vector]:
    """Return latencies of arrivals and how many per batch take them, both [n].

    An arrival at instant u of a batch of time T finds p ahead of it. It waits the rest of the
    batch, floor(p / B) full batches, and its own batch, whose size is the number
    of arrivals by its start: those before it and a Poisson number after it, taken at three points.
    """
    max_batch = len(times) - 1
    latencies = [np.array([times[1]])]  # arrivals at an idle replica
    weights = [np.array([left[0]])]
    instants = (np.arange(INSTANTS) + 0.5) / INSTANTS
    begun = left[: max_batch + 1].copy()
    begun[min(1, max_batch)] += left[0]
    behind = left[max_batch:].copy()
    behind[0] = begun[max_batch]
    for size in range(1, max_batch + 1):
        remaining = times[size] * (1 - instants)
        most = int(rate * times[size] + 8 * math.sqrt(rate) + 12)
        came = _poisson(rate * times[size] * instants, most)
        if size < max_batch:
            ahead = begun[size] * came
        else:
            ahead = np.stack([np.convolve(behind, row) for row in came])
        place = np.arange(ahead.shape[1])
        wait = remaining[:, np.newaxis] + (place // max_batch) * times[-1]
        for deviations, share in _POISSON_POINTS:
            more = np.maximum(0.0, rate * wait + deviations * np.sqrt(rate * wait))
            own = np.minimum(max_batch, place % max_batch + 1 + more)
            latency = wait + times[0] + (times[-1] - times[0]) * own / max_batch
            latencies.append(latency.ravel())
            weights.append(ahead.ravel() * (share * rate * times[size] / INSTANTS))
    return np.concatenate(latencies), np.concatenate(weights)
