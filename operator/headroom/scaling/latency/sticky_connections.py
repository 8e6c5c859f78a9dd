"""Computes how unevenly keep-alive connections load the replicas: balls into bins.

Each connection is bound to one replica at random and carries an equal share of the requests. No
queue model is exact here, so the rule is conservative: the fleet carries what its most loaded
replica carries, in nine of ten random bindings.
"""

from __future__ import annotations

import math
from functools import lru_cache

CONNECTIONS = 64
UNLUCKY = 0.1
"""Share of the bindings in which some replica has more connections than assumed."""
REPAIRED = 1.0
"""The same, where overloaded replicas are evicted: one replica may have more, because its
connections are spread again (`replacement/rebalancer.py`)."""


@lru_cache(maxsize=4096)
def max_connections(replicas: int, connections: int = CONNECTIONS, unlucky: float = UNLUCKY) -> int:
    """Return how many connections the most loaded replica has, unless a binding is `unlucky`.

    The smallest k with N P(Binomial(C, 1/N) > k) <= `unlucky`. Worked for nine of ten bindings: 64
    over 4: 23, where 16 would be even; over 12: 11, where 5.3 would be; over 40: 6.
    """
    if replicas == 1:
        return connections
    chance, more = 1 / replicas, 0.0
    for count in range(connections, 0, -1):
        more += (
            math.comb(connections, count) * chance**count * (1 - chance) ** (connections - count)
        )
        if replicas * more > unlucky:
            return count
    return 1


def imbalance(replicas: int, connections: int = CONNECTIONS, unlucky: float = UNLUCKY) -> float:
    """Return the most loaded replica's share of the requests over an even share; at least 1.

    `unlucky` bindings have more, as in `max_connections`.
    """
    return max_connections(replicas, connections, unlucky) * replicas / connections
