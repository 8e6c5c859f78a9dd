"""Computes which share of the requests meets replicas that have more than they carry.

Shares are of all requests. Connections that move are equally busy and meet one of the remaining
replicas at random, whatever its load, so one replica gets k of K with the probability of a
binomial distribution.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Shares = NDArray[np.float64]
MOST_MOVED = 500
"""More connections that move are as even as this number."""


def late_load(shares: Shares, carried: float) -> float:
    """Return the share of the requests at replicas with more than `carried` of them."""
    return float(shares[shares > carried].sum())


def late_load_after(shares: Shares, evicted: int, connections: float, carried: float) -> float:
    """Return the expected late load once the most loaded replicas are evicted.

    `shares` fall. `connections` carry all requests together. Worked: two replicas have half each,
    four have none, 64 connections, 0.35 of the requests are carried: with one evicted its 32
    connections spread over five, the other old one has more than 0.6 and is late, the four are not.
    """
    moved, rest = float(shares[:evicted].sum()), shares[evicted:]
    count = min(MOST_MOVED, max(1, round(moved * connections)))
    each = moved / count
    room = np.floor((carried - rest) / each + _ROUNDING).clip(-1.0, count).astype(int)
    beyond, arriving = _beyond(count, len(rest))
    return float((rest * beyond[room + 1] + each * arriving[room + 1]).sum())


_ROUNDING = 1e-9


@lru_cache(maxsize=1024)
def _beyond(count: int, bins: int) -> tuple[Shares, Shares]:
    """Return P(K >= k) and E[K; K >= k] for k in 0..count + 1: the balls in one of some bins."""
    if bins == 1:
        chances = np.zeros(count + 1)
        chances[count] = 1.0
    else:
        numbers = np.arange(count)
        odds = (count - numbers) / (numbers + 1) / (bins - 1)
        logs = np.concatenate(([0.0], np.cumsum(np.log(odds))))
        chances = np.exp(logs + count * math.log1p(-1.0 / bins))
    upwards = np.append(np.cumsum(chances[::-1])[::-1], 0.0)
    mean = np.append(np.cumsum((chances * np.arange(count + 1))[::-1])[::-1], 0.0)
    return upwards, mean
