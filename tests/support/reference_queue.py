"""Replicas in steady state, simulated in the plainest way: one heap of events, one queue each.

SharedBound no code with the tables' own simulation, so that the two can be held against each other.
"""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np

from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Routing


def percentile(
    cost: CostModel,
    routing: Routing,
    replicas: int,
    utilization: float,
    wanted: float,
    *,
    requests: int,
    seed: int = 1,
) -> float:
    """Percentile of latency in seconds; Poisson arrivals, lognormal executions."""
    chance = np.random.default_rng(seed)
    rate_rps = utilization * replicas * cost.full_batch_rps
    arrivals = np.cumsum(chance.exponential(1 / rate_rps, requests)).tolist()
    sigma = float(np.sqrt(np.log1p(cost.cv**2)))
    factors = iter(np.exp(sigma * chance.standard_normal(requests) - sigma**2 / 2).tolist())
    choices = chance.integers(0, replicas, (requests, 2)).tolist()
    bound = chance.integers(0, replicas, 64).tolist()
    cap = 2 * cost.max_batch if cost.max_batch > 1 else cost.slots + 1
    queues: list[deque[float]] = [deque() for _ in range(replicas)]
    central: deque[float] = deque()
    free = [cost.slots] * replicas
    in_flight = [0] * replicas
    ends: list[tuple[float, int, list[float]]] = []
    latencies: list[float] = []

    def start(row: int, now_s: float) -> None:
        queue = queues[row]
        while free[row] and queue:
            batch = [queue.popleft() for _ in range(min(len(queue), cost.max_batch))]
            free[row] -= 1
            end_s = now_s + cost.batch_s(len(batch)) * next(factors)
            heapq.heappush(ends, (end_s, row, batch))

    def enter(row: int, arrived_s: float, now_s: float) -> None:
        in_flight[row] += 1
        queues[row].append(arrived_s)
        start(row, now_s)

    def least(turn: int) -> int:
        return min(range(replicas), key=lambda row: (in_flight[row], (row - turn) % replicas))

    for number, now_s in enumerate(arrivals):
        while ends and ends[0][0] <= now_s:
            end_s, row, batch = heapq.heappop(ends)
            latencies += [end_s - arrived_s for arrived_s in batch]
            free[row] += 1
            in_flight[row] -= len(batch)
            start(row, end_s)
            while central and in_flight[row] < cap:
                enter(row, central.popleft(), end_s)
        one, other = choices[number]
        if routing is Routing.RANDOM:
            row = one
        elif routing is Routing.STICKY:
            row = bound[number * 2654435761 % 2**32 % 64]
        elif routing is Routing.ROUND_ROBIN:
            row = number % replicas
        elif routing is Routing.POWER_OF_TWO:
            other = (other + (other == one)) % replicas
            row = one if in_flight[one] <= in_flight[other] else other
        else:
            row = least(number % replicas)
            if routing is Routing.CENTRAL and in_flight[row] >= cap:
                central.append(now_s)
                continue
        enter(row, now_s, now_s)
    return float(np.percentile(latencies[requests // 10 :], 100 * wanted))
