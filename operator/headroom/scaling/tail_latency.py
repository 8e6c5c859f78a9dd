"""The tail of a batching replica: any percentile of latency as a function of utilization.

One replica serves Poisson arrivals in batches of at most B with cost t(b) = t0 + a b and takes what
waits as soon as it is free (M/D[b,B]/1). The queue left behind at the end of a batch is a Markov
chain; its stationary distribution gives the latency of every arrival. Compare Inoue 2021
(arXiv 1912.06322), whose closed form bounds the mean without a batch cap.

Divided by the full batch's time T = t(B), latency depends on three numbers only: the fixed share
x = t0 / T, B, and utilization. A curve over utilization is computed once per (x, B, percentile),
x rounded to 1/64, and kept.

Each replica is taken to see its own Poisson stream, which holds for requests spread at random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values import CostModel, Routing

Vector = NDArray[np.float64]

GRID = (0.0, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.68, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95)
"""Utilizations at which the chain is solved; above the last, latency grows as 1 / (1 - rho)."""
FIXED_SHARE_STEPS = 64
LARGEST_CHAIN_BATCH = 64
"""Above this batch the scaled curve hardly changes any more, and the chain grows."""
INSTANTS = 12
"""Arrival instants per batch at which latency is evaluated."""
_ROUNDING = 1e-9
"""Forgives the last bits of a division: 2.0000000001 is two replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TailLatency:
    """The promised percentile of a service's latency against its arrivals and its replicas."""

    cost: CostModel
    percentile: float
    routing: Routing = Routing.RANDOM

    def latency_s(self, arrival_rps: float, replicas: int) -> float:
        """Return the percentile in seconds when `replicas` share these arrivals; inf if too few."""
        utilization = arrival_rps / (replicas * self.cost.full_batch_rps)
        if utilization >= 1.0:
            return math.inf
        curve = self._curve()
        full_s = self.cost.batch_s(self.cost.max_batch)
        if utilization <= GRID[-1]:
            return full_s * float(np.interp(utilization, GRID, curve))
        return full_s * float(curve[-1]) * (1 - GRID[-1]) / (1 - utilization)

    @property
    def idle_s(self) -> float:
        """Latency of an idle replica: no target below it can be promised."""
        return self.cost.batch_s(1)

    def capacity_rps(self, target_s: float, replicas: int) -> float:
        """Return the most that each of `replicas` carries within the target; 0 if nothing is."""
        full_s = self.cost.batch_s(self.cost.max_batch)
        if self.idle_s > target_s:
            return 0.0
        curve, target = self._curve(), target_s / full_s
        if target >= curve[-1]:
            utilization = 1 - float(curve[-1]) * (1 - GRID[-1]) / target
        else:
            above = max(1, int(np.searchsorted(curve, target, side="right")))
            low, high = float(curve[above - 1]), float(curve[above])
            part = max(0.0, target - low) / (high - low)
            utilization = GRID[above - 1] + part * (GRID[above] - GRID[above - 1])
        return utilization * self.cost.full_batch_rps

    def replicas_for(self, arrival_rps: float, target_s: float, margin: float) -> int | None:
        """Return the fewest replicas with arrivals x margin / N <= capacity(N); None if none do.

        Capacity per replica does not fall with N, so what one replica could carry bounds N from
        above, and the answer is found by bisection.
        """
        wanted_rps = arrival_rps * margin
        alone_rps = self.capacity_rps(target_s, 1)
        if alone_rps <= 0:
            return None
        low, high = 0, math.ceil(wanted_rps / alone_rps - _ROUNDING)
        while high - low > 1:
            middle = (low + high) // 2
            if wanted_rps / middle <= self.capacity_rps(target_s, middle) * (1 + _ROUNDING):
                high = middle
            else:
                low = middle
        return max(0, high)

    def _curve(self) -> Vector:
        full_s = self.cost.batch_s(self.cost.max_batch)
        share = round(FIXED_SHARE_STEPS * self.cost.fixed_s / full_s)
        return _scaled_curve(share, min(self.cost.max_batch, LARGEST_CHAIN_BATCH), self.percentile)


@lru_cache(maxsize=512)
def _scaled_curve(share: int, max_batch: int, percentile: float) -> Vector:
    """Latency over the full batch's time at each utilization of GRID, made non-decreasing."""
    fixed = share / FIXED_SHARE_STEPS
    per_item = (1 - fixed) / max_batch
    times: Vector = fixed + per_item * np.arange(max_batch + 1, dtype=np.float64)
    values = [float(times[1])]  # an idle replica serves batches of one
    values += [_percentile(rho * max_batch, times, percentile) for rho in GRID[1:]]
    return np.maximum.accumulate(np.asarray(values))


def _percentile(rate: float, times: Vector, percentile: float) -> float:
    """Percentile of latency at `rate` arrivals per full batch; times[b] = cost of b, [B + 1]."""
    latency, weight = _arrivals(_left_behind(rate, times), rate, times)
    order = np.argsort(latency)
    cumulated = np.cumsum(weight[order])
    index = int(np.searchsorted(cumulated, percentile * cumulated[-1]))
    return float(latency[order][min(index, len(order) - 1)])


def _poisson(means: Vector, size: int) -> Vector:
    """Probabilities of 0..size-1 events for each positive mean, the rest on the last, [n, size]."""
    counts = np.arange(size)
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(counts[1:]))))
    means = means[:, np.newaxis]
    p: Vector = np.exp(counts * np.log(means) - means - log_factorial)
    p[:, -1] += np.maximum(0.0, 1.0 - p.sum(axis=1))
    return p


def _left_behind(rate: float, times: Vector) -> Vector:
    """Stationary distribution of the requests waiting when a batch ends, [states].

    The tail falls by about exp(-2 (1 - rho) / rho) per request (diffusion limit), so that the
    states kept leave out less than 1e-8.
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
    """Latencies of arrivals and how many per batch take them, both [n].

    An arrival at instant u of a batch of time T finds p ahead of it. It waits the rest of the
    batch, floor(p / B) full batches, and its own batch, whose size is what has come by its start:
    those before it and a Poisson number after it, taken at three points.
    """
    max_batch = len(times) - 1
    latencies = [np.array([times[1]])]  # whoever arrives at an idle replica
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
