"""Queueing theory that plants are held against: M/M/c and batches."""

from __future__ import annotations

import math

import numpy as np

from headroom.simulator.plant import Server


def erlang_c(servers: int, offered: float) -> float:
    """Probability to wait in M/M/c (Erlang 1917), from its sum."""
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    queued = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return queued / (sum(terms) + queued)


def mmc_mean_s(servers: int, utilization: float, mean_s: float) -> float:
    """Mean time in the system of M/M/c."""
    waits = erlang_c(servers, servers * utilization)
    return mean_s + waits * mean_s / (servers * (1 - utilization))


def mmc_quantile_s(servers: int, utilization: float, mean_s: float, ratio: float) -> float:
    """Percentile of the time in the system of M/M/c, by bisection of its tail."""
    waits, offered = erlang_c(servers, servers * utilization), servers * utilization
    gap = servers - 1 - offered

    def beyond(x: float) -> float:
        late = x if gap == 0 else -math.expm1(-gap * x) / gap
        return math.exp(-x) * (1 + waits * late)

    low, high = 0.0, 1e4
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > 1 - ratio else (low, middle)
    return mean_s * low


def batch_mean_s(server: Server, rate_rps: float) -> float:
    """Mean time in the system of M/D[b,B]/1, exactly: its chain and Little's law.

    The chain's state is what a batch leaves behind, n. From n = 0 the replica idles 1/lambda, then
    serves one; else it serves b = min(n, B) of the n, while lambda t(b) arrive, evenly.
    """
    largest = server.max_batch
    rho = rate_rps / server.full_rps
    states = 4 * largest + int(12 * rho / (1 - rho)) + 30
    left = np.arange(states)
    size = np.clip(left, 1, largest)
    busy_s = server.fixed_s + server.per_item_s * size
    transition = np.zeros((states, states))
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, states)))))
    for n in range(states):
        came = rate_rps * busy_s[n]
        rest = max(0, n - largest)
        mass = np.exp(left * math.log(came) - came - log_factorial)[: states - rest]
        transition[n, rest:] = mass
        transition[n, -1] += 1 - mass.sum()
    balance = np.vstack((transition.T - np.eye(states), np.ones(states)))
    stationary = np.linalg.lstsq(balance, np.append(np.zeros(states), 1.0), rcond=None)[0]
    cycle_s = busy_s + np.where(left == 0, 1 / rate_rps, 0.0)
    in_system_s = np.maximum(left, 1) * busy_s + rate_rps * busy_s**2 / 2
    return float(stationary @ in_system_s / (stationary @ cycle_s) / rate_rps)


def inoue_bound_s(fixed_s: float, per_item_s: float, rate_rps: float) -> float:
    """Inoue 2021 (arXiv 1912.06322), theorem 2: the mean without a batch cap is at most this."""
    load, fixed = rate_rps * per_item_s, rate_rps * fixed_s
    few = (per_item_s + fixed_s) / (2 * (1 - load)) * (1 + 2 * fixed + (1 - fixed) / (1 + load))
    many = 1.5 * fixed_s / (1 - load) + per_item_s / 2 * (load + 2) / (1 - load**2)
    return min(few, many)
